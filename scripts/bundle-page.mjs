// Makes the page of the admin listener: one script, one style sheet, an icon and the HTML. The names of the first three have
// the hash of their content, because browsers keep them for good.
//
//   node scripts/bundle-page.mjs FOLDER

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { build } from "rolldown";
import { root } from "./setup.mjs";

const source = join(root, "packages/page");
const out = process.argv[2];

const { output } = await build({
  cwd: root,
  input: join(source, "main.tsx"),
  platform: "browser",
  tsconfig: join(source, "tsconfig.json"),
  transform: { target: "es2023" },
  write: false,
  onLog: (level, { message }) => {
    if (level === "warn") throw new Error(message);
  },
  output: { format: "esm", minify: true },
});
const plotStyle = createRequire(join(source, "package.json")).resolve("uplot/dist/uPlot.min.css");
const styles = [plotStyle, join(source, "page.css")].map((file) => readFileSync(file, "utf8"));
const assets = {
  "page.js": output[0].code,
  "page.css": styles.join("\n"),
  "icon.svg": readFileSync(join(source, "icon.svg"), "utf8"),
};
mkdirSync(join(out, "assets"), { recursive: true });
let html = readFileSync(join(source, "index.html"), "utf8");
for (const [name, text] of Object.entries(assets)) {
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 12);
  const hashed = name.replace(".", `-${hash}.`);
  writeFileSync(join(out, "assets", hashed), text);
  html = html.replace(`assets/${name}`, `assets/${hashed}`);
}
writeFileSync(join(out, "index.html"), html);
