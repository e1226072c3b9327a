import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./source-graph.ts";

test("no call passes more files than test/walk.json allows, and docs/architecture.md shows which", () => {
  const { status, stderr } = spawnSync(process.execPath, [join(root, "scripts/walk.mjs"), "--check"]);
  expect(status === 0 ? "" : String(stderr)).toBe("");
});
