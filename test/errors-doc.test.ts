import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { errorCatalogue } from "../scripts/error-catalogue.ts";
import { root } from "./source-graph.ts";

test("every class in packages/core/src/errors is in the catalogue", async () => {
  const folder = join(root, "packages/core/src/errors");
  const files = readdirSync(folder).filter((name) => name.endsWith("-error.ts"));
  const modules = await Promise.all(files.map((file) => import(join(folder, file)) as Promise<object>));
  const classes = modules.flatMap((module) => Object.keys(module)).filter((name) => name.endsWith("Error"));
  expect(Object.keys(errorCatalogue).toSorted()).toEqual(classes.toSorted());
});

test("docs/reference/errors.md says what the catalogue says", () => {
  const { status, stderr } = spawnSync(process.execPath, [join(root, "scripts/errors-doc.mjs"), "--check"]);
  expect({ status, stderr: String(stderr) }).toEqual({ status: 0, stderr: "" });
});
