// `npm run docs`: writes the generated pages of docs/, builds docs/ into a static site in site/dist, and serves it on
// http://127.0.0.1:4173. `-- --build` only builds; it fails if VitePress warns of anything.

import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { basename, dirname, extname, join } from "node:path";
import { installIn, reportSetupError, root, setup, SetupError } from "./setup.mjs";
import { sitePages } from "./site-pages.mjs";

const site = join(root, "site");
const types = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};
const vitepress = join(site, "node_modules/vitepress/bin/vitepress.js");

try {
  setup();
  installIn("site");
  for (const writer of ["picture", "reference", "admin-doc", "api-doc"])
    run(join(root, `scripts/${writer}.mjs`));
  copyPages();
  build();
  if (!process.argv.includes("--build")) serve();
} catch (error) {
  reportSetupError(error);
  process.exitCode = 1;
}

/** Copies every page to where it is on the site, with the pictures beside it. */
function copyPages() {
  const pages = join(site, "pages");
  rmSync(pages, { recursive: true, force: true });
  for (const [from, to] of sitePages()) {
    const text = readFileSync(join(root, from), "utf8");
    mkdirSync(dirname(join(pages, to)), { recursive: true });
    writeFileSync(
      join(pages, to),
      from.endsWith(".md") ? text : `# ${basename(from)}\n\n\`\`\`js\n${text}\`\`\`\n`,
    );
  }
  const pictures = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).filter((file) =>
    /\.(?:svg|png)$/.test(file),
  );
  for (const file of pictures) {
    mkdirSync(dirname(join(pages, file)), { recursive: true });
    copyFileSync(join(root, "docs", file), join(pages, file));
  }
  // The README refers to it from the root of the repository.
  mkdirSync(join(pages, "docs"));
  copyFileSync(join(root, "docs/junctor.svg"), join(pages, "docs/junctor.svg"));
  mkdirSync(join(pages, "public"));
  copyFileSync(join(root, "packages/page/icon.svg"), join(pages, "public/icon.svg"));
}

function build() {
  const { status, stdout, stderr } = spawnSync(process.execPath, [vitepress, "build", "."], {
    cwd: site,
    encoding: "utf8",
  });
  const warnings = stderr.split("\n").filter((line) => /\bwarn|not loaded|dead link/i.test(line));
  process.stderr.write(stdout + stderr);
  if (status !== 0 || warnings.length > 0)
    throw new SetupError("build", `the site was not built without a warning`);
}

function serve() {
  const folder = join(site, "dist");
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const file = join(folder, pathname.endsWith("/") ? `${pathname}index.html` : pathname);
    const isThere = file.startsWith(folder) && existsSync(file) && statSync(file).isFile();
    const type = types[extname(file)] ?? "text/plain";
    response.writeHead(isThere ? 200 : 404, { "content-type": isThere ? type : "text/html" });
    createReadStream(isThere ? file : join(folder, "404.html")).pipe(response);
  });
  server.listen(4173, "127.0.0.1", () => console.log("Open http://127.0.0.1:4173/ (Ctrl-C stops it)"));
}

function run(script) {
  const { status } = spawnSync(process.execPath, [script], { stdio: "inherit" });
  if (status !== 0) throw new SetupError("build", `${basename(script)} failed`);
}
