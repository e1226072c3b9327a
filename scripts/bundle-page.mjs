// Makes the page of the admin listener: one script, one style sheet, two fonts, an icon and the HTML. The names of all but the
// HTML have the hash of their content, because browsers keep them for good.
//
//   node scripts/bundle-page.mjs FOLDER

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
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
const { resolve } = createRequire(join(source, "package.json"));
const styles = [resolve("uplot/dist/uPlot.min.css"), join(source, "page.css")];
const fonts = { "geist.woff2": "geist", "geist-mono.woff2": "geist-mono" };
mkdirSync(join(out, "assets"), { recursive: true });

/** Writes a file under a name with its hash. */
function writeAsset(name, content) {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 12);
  const hashed = name.replace(".", `-${hash}.`);
  writeFileSync(join(out, "assets", hashed), content);
  return hashed;
}

let html = readFileSync(join(source, "index.html"), "utf8");
let css = styles.map((file) => readFileSync(file, "utf8")).join("\n");
for (const [name, font] of Object.entries(fonts)) {
  const file = resolve(`@fontsource-variable/${font}/files/${font}-latin-wght-normal.woff2`);
  const hashed = writeAsset(name, readFileSync(file));
  css = css.replace(`url("${name}")`, `url("${hashed}")`);
  html = html.replace(`assets/${name}`, `assets/${hashed}`);
}
writeFileSync(
  join(out, "assets/fonts-license.txt"),
  readFileSync(join(dirname(resolve("@fontsource-variable/geist/package.json")), "LICENSE")),
);
const assets = {
  "page.js": output[0].code,
  "page.css": css,
  "icon.svg": readFileSync(join(source, "icon.svg")),
};
for (const [name, content] of Object.entries(assets))
  html = html.replace(`assets/${name}`, `assets/${writeAsset(name, content)}`);
writeFileSync(join(out, "index.html"), html);
