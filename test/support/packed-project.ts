import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../source-graph.ts";

/**
 * Makes a folder one that `npm install` put the tarball of `npm pack` into, with `more` packages beside it. Dependencies are links to those
 * of this checkout, so no registry is needed. Gives the folder of the package.
 */
export function installPacked(folder: string, more: readonly string[] = []): string {
  const flags = ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder];
  const [tarball = ""] = execFileSync("npm", flags, { cwd: root, encoding: "utf8" })
    .trim()
    .split("\n")
    .slice(-1);
  const installed = join(folder, "node_modules", "junctor");
  mkdirSync(installed, { recursive: true });
  execFileSync("tar", ["-xzf", join(folder, tarball), "-C", installed, "--strip-components=1"]);
  const { dependencies, bin } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as {
    dependencies: object;
    bin: { junctor: string };
  };
  for (const name of [...Object.keys(dependencies), ...more]) {
    mkdirSync(dirname(join(folder, "node_modules", name)), { recursive: true });
    symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
  }
  mkdirSync(join(folder, "node_modules", ".bin"));
  symlinkSync(join(installed, bin.junctor), join(folder, "node_modules", ".bin", "junctor"));
  execFileSync("chmod", ["+x", join(installed, bin.junctor)]);
  return installed;
}
