// Loads a TypeScript module of the tests into a script, with all that it imports.

import { join } from "node:path";
import { root } from "./setup.mjs";

// The packages as they are in the source, whether they are built or not.
const sourceConditions = ["@junctor/source", "node", "import", "module", "default"];

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
    resolve: { conditions: sourceConditions },
    ssr: { resolve: { conditions: sourceConditions } },
  });
  return module;
}
