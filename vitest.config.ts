import type { Alias } from "vite";
import { defineConfig, type ViteUserConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
// @ts-expect-error -- it is JavaScript, for scripts too
import { sourceAlias } from "./scripts/source-alias.mjs";

// Tests of the source itself, which take a second each.
const ofSource = ["doors", "errors", "exports", "invocation", "option-keys", "reference"].map(
  (name) => `test/${name}.test.ts`,
);
const unit = "packages/*/src/**/*.test.ts";
const slow = "{packages/*/src,test}/**/*.slow.test.ts";

/** Twice the processors that CI has: these tests mostly wait for time to pass and for other processes. */
const waitingWorkers = 4;

/** Slow files first, so that none of them is left over when all others are done. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- the method of the sequencer
    const sorted = await super.sort(files);
    const isSlow = ({ project }: TestSpecification): boolean => project.name === "slow";
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}

const config: ViteUserConfig = defineConfig({
  resolve: { alias: sourceAlias as Alias[] },
  test: {
    environment: "node",
    setupFiles: ["test/support/own-folders.ts"],
    // Processes, not threads: tests raise signals, change the environment and watch memory.
    pool: "forks",
    // One process for many files: loading the source again for each takes longer than the tests of most.
    isolate: false,
    sequence: { sequencer: SlowFirst },
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
        test: {
          name: "unit",
          include: [unit, ...ofSource],
          exclude: [slow],
          maxWorkers: 2,
          env: { JUNCTOR_RUNS: process.env["JUNCTOR_RUNS"] === undefined ? "" : "all" },
        },
      },
      {
        extends: true,
        test: {
          name: "journeys",
          include: ["test/**/*.test.ts"],
          exclude: [slow, ...ofSource],
          maxWorkers: waitingWorkers,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        // What is long or loads the machine. Some of them watch the memory of their process, so each file has one of its own.
        test: {
          name: "slow",
          include: [slow],
          isolate: true,
          maxWorkers: waitingWorkers,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});

export default config;
