import { defineConfig, type ViteUserConfig } from "vitest/config";

const config: ViteUserConfig = defineConfig({
  test: {
    environment: "node",
    setupFiles: ["test/support/own-folders.ts"],
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    // Processes, not threads: tests raise signals, change the environment and watch memory.
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 5_000,
    // These end a test that hangs. They are no bounds of speed: on a busy machine everything takes longer.
    expect: { poll: { interval: 5, timeout: 30_000 } },
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
  },
});

export default config;
