import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./source-graph.ts";

test("the goals in test/house.json stay met", () => {
  const { status, stderr } = spawnSync(process.execPath, [
    join(root, "scripts/house.mjs"),
    "--check",
    "--source",
  ]);
  expect(status === 0 ? "" : String(stderr)).toBe("");
});
