// Reads and parses the files of src, for the scripts that measure them. Tests in src are left out.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";
import { root } from "./setup.mjs";

/** Paths of the shipped files, from `src/`, sorted. */
export function listSource() {
  return readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .toSorted();
}

/** The text of a file of `src/`. */
export function readSource(file) {
  return readFileSync(join(root, "src", file), "utf8");
}

/** The ESTree of TypeScript text. */
export function parse(code) {
  return parseAst(code, { lang: "ts", sourceType: "module" });
}

/** Calls `see(node, parents)` for every node, parents first. `parents` ends with the nearest one. */
export function visit(node, see, parents = []) {
  see(node, parents);
  const inner = [...parents, node];
  for (const child of Object.values(node)) {
    for (const item of Array.isArray(child) ? child : [child]) {
      if (typeof item?.type === "string") visit(item, see, inner);
    }
  }
}
