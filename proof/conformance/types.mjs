// `npm run proof -- conformance types`: installs the packed packages and several versions of TypeScript from npm into an empty project, and
// compiles a program that uses every entry point, with library checks on. Needs a registry.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../scripts/setup.mjs";

const versions = ["5.4.5", "5.6.3", "5.9.3", "7.0.2"];
const program = readFileSync(join(root, "test/fixtures/typed-program.txt"));

const project = mkdtempSync(join(tmpdir(), "junctor-types-"));
let failed = 0;
try {
  const packages = ["@junctor/core", "@junctor/server", "@junctor/client", "junctor"];
  const chosen = packages.flatMap((name) => ["-w", name]);
  execFileSync("npm", ["pack", "--silent", "--ignore-scripts", ...chosen, "--pack-destination", project], {
    cwd: root,
    stdio: "ignore",
  });
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module", private: true }));
  writeFileSync(join(project, "main.ts"), program);
  const tarballs = readdirSync(project)
    .filter((file) => file.endsWith(".tgz"))
    .map((file) => `./${file}`);
  const compilers = versions.map((version) => `ts-${version}@npm:typescript@${version}`);
  const flags = ["--no-audit", "--no-fund", "--ignore-scripts"];
  execFileSync("npm", ["install", ...flags, ...tarballs, ...compilers, "zod@4.6.7", "@types/node@20.19.43"], {
    cwd: project,
    stdio: "ignore",
  });
  for (const version of versions) {
    const strict = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "false"];
    const target = ["--module", "nodenext", "--target", "es2022", "--lib", "es2022,esnext.disposable,dom"];
    const words = [`node_modules/ts-${version}/bin/tsc`, ...strict, ...target, "--types", "node", "main.ts"];
    const { status, stdout } = spawnSync(process.execPath, words, { cwd: project, encoding: "utf8" });
    console.log(
      `${status === 0 ? "ok    " : "FAILED"} TypeScript ${version}${status === 0 ? "" : `\n${stdout}`}`,
    );
    if (status !== 0) failed++;
  }
} finally {
  rmSync(project, { recursive: true, force: true });
}
console.log(`${versions.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
