import { defineConfig, type ViteUserConfig } from "vitest/config";

const config: ViteUserConfig = defineConfig({
  test: {
    environment: "node",
    setupFiles: ["test/support/own-folders.ts"],
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    // Processes, not threads: tests raise signals, change the environment and watch memory.
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 15_000,
    hookTimeout: 15_000,
    teardownTimeout: 5_000,
    // A condition that is polled for comes soon; on a busy machine, less soon.
    expect: { poll: { interval: 5, timeout: 10_000 } },
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
  },
});

export default config;
