// Loads a TypeScript module into a script, with all that it imports.

import { join } from "node:path";
import { root } from "./setup.mjs";
import { sourceAlias } from "./source-alias.mjs";

/** Resolves with the exports of the module at a path of this checkout. The checkout must be installed. */
export async function loadTypeScript(path) {
  const { runnerImport } = await import("vite");
  // Node 20 does not know `using`.
  const oxc = { target: "es2023" };
  const { module } = await runnerImport(join(root, path), {
    root,
    configFile: false,
    logLevel: "error",
    oxc,
    resolve: { alias: sourceAlias },
  });
  return module;
}
