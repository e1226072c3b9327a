import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const folder = fileURLToPath(new URL("..", import.meta.url));
const stamp = join(folder, "node_modules/.junctor-field-stamp");

/** Installs the clients when they are missing or stale. */
export function installClients() {
  const key = createHash("sha256")
    .update(process.version)
    .update(readFileSync(join(folder, "package-lock.json")))
    .digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === key) return;
  console.error("field: installing the clients (npm ci in proof/field)");
  const flags = ["--ignore-scripts", "--prefer-offline", "--omit-lockfile-registry-resolved", "--no-audit"];
  const { status, stdout, stderr } = spawnSync("npm", ["ci", ...flags, "--no-fund"], {
    cwd: folder,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${stdout}${stderr}npm ci in proof/field failed with ${status}`);
  writeFileSync(stamp, key);
}

/** The Node that the clients run on. Several of them refuse the oldest one that Junctor runs on. */
export function clientNode() {
  const own = join(folder, "node_modules", `node-linux-${process.arch}`, "bin/node");
  return existsSync(own) ? own : process.execPath;
}

/** The installed version of a package of this folder. @param {string} name */
export function versionOf(name) {
  const { version } = JSON.parse(readFileSync(join(folder, "node_modules", name, "package.json"), "utf8"));
  return String(version);
}
