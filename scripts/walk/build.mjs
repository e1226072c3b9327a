import { join, sep } from "node:path";
import { build } from "rolldown";
import { root } from "../setup.mjs";
import { parse, visit } from "../source.mjs";

const source = join(root, "src", sep);

/** Writes the library to a folder, with a probe at the start of each function that names its file. */
export async function buildProbed(folder) {
  await build({
    cwd: root,
    input: join(source, "index.ts"),
    platform: "node",
    tsconfig: join(root, "tsconfig.build.json"),
    external: [/^node:/, /^[^./\0]/],
    plugins: [{ name: "probe", transform: { order: "pre", filter: { id: /\.ts$/ }, handler: insertProbes } }],
    output: { dir: folder, format: "esm", entryFileNames: "[name].mjs", chunkFileNames: "[name].mjs" },
  });
  return join(folder, "index.mjs");
}

function insertProbes(code, id) {
  const file = JSON.stringify(id.slice(source.length).replaceAll("\\", "/"));
  const probe = `globalThis.junctorWalk?.(${file})`;
  const edits = [];
  visit(parse(code), ({ type, body }) => {
    if (!functionTypes.has(type) || body == null) return;
    if (body.type === "BlockStatement") edits.push([body.start + 1, `${probe};`]);
    else edits.push([body.start, `(${probe}, `], [body.end, ")"]);
  });
  let probed = "";
  let copied = 0;
  for (const [at, text] of edits.toSorted(([a], [b]) => a - b)) {
    probed += code.slice(copied, at) + text;
    copied = at;
  }
  return probed + code.slice(copied);
}

const functionTypes = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);
