import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./source-graph.ts";

// A server on stdio is started once for each conversation, so what it loads is waited for every time.
test("importing the library loads none of its dependencies", () => {
  const url = JSON.stringify(join(root, "packages/junctor/dist/index.js"));
  const code = `
    import { createRequire } from "node:module";
    await import(${url});
    console.log(JSON.stringify(Object.keys(createRequire(${url}).cache)));`;
  const said = execFileSync(process.execPath, ["--input-type=module", "--eval", code], { encoding: "utf8" });
  expect(JSON.parse(said)).toEqual([]);
});
