import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./source-graph.ts";

test("docs/reference/api has every public name, with a sentence, as the packages declare it", () => {
  const { status, stderr } = spawnSync(process.execPath, [join(root, "scripts/api-doc.mjs"), "--check"]);
  expect({ status, stderr: String(stderr) }).toEqual({ status: 0, stderr: "" });
});
