// Makes JavaScript of the rows: Node 20 cannot run TypeScript, and rows use the source and the support of tests as they are.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "rolldown";
import { root } from "../../../scripts/setup.mjs";

/** Where the JavaScript is. A process that runs may read it while another one is made, so each run has its own. */
export const output = join(root, "proof/attacks/.built", String(process.pid));

/** The names of all rows, in the order of the page. */
export const rows = [
  "storm",
  "bytes",
  "mutations",
  "kills",
  "disk-full",
  "streams",
  "clock-jumps",
  "floods",
  "answers",
  "parked",
  "fairness",
  "schema-bombs",
  "secrets",
  "strangers",
  "tokens",
  "half-requests",
  "shared-facts",
  "soak",
  "simulation",
];

export async function bundle() {
  const entries = rows.map((name) => [`rows/${name}`, join(root, `proof/attacks/rows/${name}.ts`)]);
  await build({
    cwd: root,
    input: { host: join(root, "proof/attacks/host.ts"), ...Object.fromEntries(entries) },
    platform: "node",
    tsconfig: join(root, "tsconfig.build.json"),
    transform: { target: "es2023" },
    // The helpers of `using` come with rolldown.
    external: (id) => !/^[./\0]|^@oxc-project|^@junctor\//.test(id),
    resolve: { conditionNames: ["@junctor/source", "node", "import", "default"] },
    plugins: [{ name: "own-url", transform: keepOwnUrl }],
    logLevel: "silent",
    output: { dir: output, entryFileNames: "[name].mjs", chunkFileNames: "chunks/[name]-[hash].mjs" },
  });
}

export function removeBundle() {
  rmSync(output, { recursive: true, force: true });
}

/** A file finds others beside its source, not beside the bundle. The host loads what was built. */
function keepOwnUrl(code, id) {
  if (!code.includes("import.meta.url") || id.endsWith("proof/attacks/host.ts")) return null;
  return { code: code.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href)), map: null };
}
