import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { root } from "./source-graph.ts";
import { installPacked } from "./support/packed-project.ts";

// What the packages declare, as a strict user compiles it: library checks on. Older versions of TypeScript are tried by
// `npm run proof -- conformance types`.

const project = mkdtempSync(join(tmpdir(), "junctor-types-"));
afterAll(() => rmSync(project, { recursive: true, force: true }));

test("the types of all packages compile in a strict project, declarations of libraries included", () => {
  installPacked(project, ["zod", "@types/node", "undici-types"]);
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
  copyFileSync(join(root, "test/fixtures/typed-program.txt"), join(project, "main.ts"));
  const flags = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "false"];
  const target = ["--module", "nodenext", "--target", "es2022", "--lib", "es2022,esnext.disposable,dom"];
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const words = [tsc, ...flags, ...target, "--types", "node", "main.ts"];
  let said = "";
  try {
    said = execFileSync(process.execPath, words, { cwd: project, encoding: "utf8" });
  } catch (error) {
    said = (error as { readonly stdout: string }).stdout;
  }
  expect(said).toBe("");
});
