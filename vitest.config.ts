import { defineConfig, type ViteUserConfig } from "vitest/config";

// Tests of the source itself, which take a second each.
const ofSource = ["exports", "house", "layers", "option-keys", "walk"].map((name) => `test/${name}.test.ts`);
const slow = "{src,test}/**/*.slow.test.ts";

const config: ViteUserConfig = defineConfig({
  test: {
    environment: "node",
    setupFiles: ["test/support/own-folders.ts"],
    // Processes, not threads: tests raise signals, change the environment and watch memory.
    pool: "forks",
    maxWorkers: 2,
    // These end a test that hangs. They are no bounds of speed: on a busy machine everything takes longer.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    teardownTimeout: 5_000,
    expect: { poll: { interval: 5, timeout: 90_000 } },
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
    projects: [
      {
        extends: true,
        // One process for many files: loading the source anew for each takes longer than the tests themselves.
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", ...ofSource],
          exclude: [slow],
          isolate: false,
          env: { JUNCTOR_RUNS: process.env["JUNCTOR_RUNS"] === undefined ? "" : "all" },
        },
      },
      {
        extends: true,
        test: { name: "journeys", include: ["test/**/*.test.ts"], exclude: [slow, ...ofSource] },
      },
      {
        extends: true,
        // What is long, loads the machine or must be timed.
        test: { name: "slow", include: [slow], fileParallelism: false },
      },
    ],
  },
});

export default config;
