import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../source-graph.ts";

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
}

/**
 * Makes a folder one that `npm install` put the tarball of a package into, with `more` packages beside it. Packages of ours are unpacked
 * from their tarballs; others are links to those of this checkout, so no registry is needed. Gives the folder of the package.
 */
export function installPacked(folder: string, more: readonly string[] = [], name = "junctor"): string {
  const installed = unpack(folder, name);
  for (const each of more) link(folder, each);
  return installed;
}

function unpack(folder: string, name: string): string {
  const installed = join(folder, "node_modules", name);
  if (existsSync(installed)) return installed;
  const flags = ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder];
  const from = join(root, "packages", name.replace("@junctor/", ""));
  const tarball = execFileSync("npm", flags, { cwd: from, encoding: "utf8" }).trim().split("\n").at(-1) ?? "";
  mkdirSync(installed, { recursive: true });
  execFileSync("tar", ["-xzf", join(folder, tarball), "-C", installed, "--strip-components=1"]);
  const { dependencies, bin } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as Manifest;
  for (const each of Object.keys(dependencies ?? {})) {
    if (each.startsWith("@junctor/")) unpack(folder, each);
    else link(folder, each);
  }
  for (const [command, file] of Object.entries(bin ?? {})) {
    mkdirSync(join(folder, "node_modules", ".bin"), { recursive: true });
    symlinkSync(join(installed, file), join(folder, "node_modules", ".bin", command));
    chmodSync(join(installed, file), 0o755);
  }
  return installed;
}

function link(folder: string, name: string): void {
  const place = join(folder, "node_modules", name);
  if (existsSync(place)) return;
  mkdirSync(dirname(place), { recursive: true });
  symlinkSync(join(root, "node_modules", name), place);
}
