import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("..", import.meta.url));
const stamp = join(folder, "node_modules/.junctor-bench-stamp");
const peers = ["fastmcp", "tmcp", "mcp-proxy", "supergateway", "mcp-hub"];

/** The others measure nothing but what the project's own development dependencies bring: the official SDKs. */
const sectionsWithPeers = ["servers", "gateways", "startup", "growth"];

/**
 * Installs the peers when they are missing or stale, and not at all when none of them is wanted.
 *
 * @param {ReadonlySet<string>} only the sections to run
 * @param {ReadonlySet<string> | undefined} systems undefined: all
 */
export function installPeers(only, systems) {
  if (!sectionsWithPeers.some((name) => only.has(name))) return;
  if (systems !== undefined && !peers.some((name) => systems.has(name))) return;
  const key = createHash("sha256")
    .update(process.version)
    .update(readFileSync(join(folder, "package-lock.json")))
    .digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === key) return;
  console.error("bench: installing the peers (npm ci in proof/bench)");
  const flags = ["--ignore-scripts", "--prefer-offline", "--omit-lockfile-registry-resolved", "--no-audit"];
  const { status, stdout, stderr } = spawnSync("npm", ["ci", ...flags, "--no-fund"], {
    cwd: folder,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${stdout}${stderr}npm ci in proof/bench failed with ${status}`);
  writeFileSync(stamp, key);
}
