// `npm run docs`: writes the pages that are generated, builds docs/ into a static site in site/dist, and serves it on
// http://127.0.0.1:4173. `-- --build` only builds; it fails where VitePress warns of anything.

import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { installIn, reportSetupError, root, setup, SetupError } from "./setup.mjs";
import { sitePages } from "./site-pages.mjs";

const site = join(root, "site");
const vitepress = join(site, "node_modules/vitepress/bin/vitepress.js");

try {
  setup();
  installIn("site");
  for (const writer of ["errors-doc", "api-doc"]) run(join(root, `scripts/${writer}.mjs`));
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
  // The README names it from the root of the repository.
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
  const args = [vitepress, "preview", ".", "--port", "4173"];
  process.exitCode = spawnSync(process.execPath, args, { cwd: site, stdio: "inherit" }).status ?? 1;
}

function run(script) {
  const { status } = spawnSync(process.execPath, [script], { stdio: "inherit" });
  if (status !== 0) throw new SetupError("build", `${basename(script)} failed`);
}
