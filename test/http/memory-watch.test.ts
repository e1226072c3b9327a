import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { oldGenerationLimit } from "../../packages/server/src/http/memory-watch.ts";

const mebi = 2 ** 20;

test.each([
  [["--max-old-space-size=256"], {}, 256],
  [["--max_old_space_size", "256"], {}, 256],
  [[], { NODE_OPTIONS: "--inspect --max-old-space-size=512" }, 512],
  [["--max-old-space-size=256"], { NODE_OPTIONS: "--max-old-space-size=512" }, 256],
  [[], {}, 4000 - 192],
])("the old generation may have what the flags %j and the environment %j say", (execArgv, env, mebis) => {
  expect(oldGenerationLimit(4000 * mebi, { execArgv, env })).toBe(mebis * mebi);
});

test("a heap smaller than a large young generation counts half", () => {
  expect(oldGenerationLimit(100 * mebi, { execArgv: [], env: {} })).toBe(50 * mebi);
});

test("V8 allows no less than the flag says", () => {
  const script = "console.log(require('node:v8').getHeapStatistics().heap_size_limit)";
  const { stdout } = spawnSync(process.execPath, ["--max-old-space-size=300", "-e", script]);
  expect(Number(String(stdout))).toBeGreaterThanOrEqual(300 * mebi);
});
