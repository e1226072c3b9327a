// What installing a product puts on the disk: the product and what it depends on, by the lock file.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** @typedef {{ name: string, bytes: number, packages: number }} Footprint */
/** @typedef {{ dependencies?: Record<string, string>, optionalDependencies?: Record<string, string>, peerDependencies?: Record<string, string>, peerDependenciesMeta?: Record<string, { optional?: boolean }> }} Locked */

const benchFolder = fileURLToPath(new URL("..", import.meta.url));
const rootFolder = fileURLToPath(new URL("../../..", import.meta.url));

/** @type {Record<string, string[]>} what one installs to use a product */
const products = {
  "sdk-v1": ["@modelcontextprotocol/sdk"],
  "sdk-v2": ["@modelcontextprotocol/server", "@modelcontextprotocol/client", "@modelcontextprotocol/node"],
  fastmcp: ["fastmcp"],
  tmcp: [
    "tmcp",
    "@tmcp/transport-http",
    "@tmcp/transport-stdio",
    "@tmcp/adapter-zod",
    "@remix-run/node-fetch-server",
  ],
  "mcp-proxy": ["mcp-proxy"],
  supergateway: ["supergateway"],
  "mcp-hub": ["mcp-hub"],
};

/**
 * @param {(names: readonly string[]) => string[]} chosen
 * @returns {Footprint[]}
 */
export function footprints(chosen) {
  const names = chosen(Object.keys(products));
  const peers = names.map((name) => footprintOf(name, benchFolder, products[name] ?? []));
  const own = chosen(["junctor"]).length > 0 ? [ownFootprint()] : [];
  return [...own, ...peers.filter(({ bytes }) => bytes > 0)];
}

/** The files that `npm pack` would take of our packages, and what they depend on. */
function ownFootprint() {
  const { packages } = lockOf(rootFolder);
  const names = ["core", "server", "client", "junctor"].map((name) => `packages/${name}`);
  const foreign = names
    .flatMap((name) => Object.keys(packages[name]?.dependencies ?? {}))
    .filter((name) => !name.startsWith("@junctor/"));
  const { bytes, packages: count } = footprintOf("junctor", rootFolder, [...new Set(foreign)]);
  const isPacked = (/** @type {string} */ file) => !file.includes("/.");
  const own = names.map((name) => bytesIn(join(rootFolder, name, "dist"), isPacked));
  return {
    name: "junctor",
    bytes: bytes + own.reduce((sum, each) => sum + each, 0),
    packages: count + names.length,
  };
}

/** @param {string} name @param {string} folder @param {readonly string[]} wanted @returns {Footprint} */
function footprintOf(name, folder, wanted) {
  const { packages } = lockOf(folder);
  const found = new Set(
    wanted.map((each) => resolveFrom(packages, "", each)).filter((key) => key !== undefined),
  );
  for (const key of found) {
    const locked = packages[key];
    const needed = [
      ...Object.keys(locked?.dependencies ?? {}),
      ...Object.keys(locked?.optionalDependencies ?? {}),
      ...Object.keys(locked?.peerDependencies ?? {}).filter(
        (peer) => locked?.peerDependenciesMeta?.[peer]?.optional !== true,
      ),
    ];
    for (const each of needed) {
      const resolved = resolveFrom(packages, key, each);
      if (resolved !== undefined) found.add(resolved);
    }
  }
  const sizes = [...found].map((key) => bytesIn(join(folder, key), () => true));
  return { name, bytes: sizes.reduce((sum, each) => sum + each, 0), packages: found.size };
}

/**
 * Looks for a package as Node does: in the nearest node_modules upwards.
 *
 * @param {Record<string, Locked>} packages
 * @param {string} from
 * @param {string} name
 */
function resolveFrom(packages, from, name) {
  for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf("node_modules/") - 1))) {
    const key = `${base === "" ? "" : `${base}/`}node_modules/${name}`;
    if (key in packages) return key;
    if (base === "") return undefined;
  }
}

/** @param {string} folder @param {(file: string) => boolean} isWanted */
function bytesIn(folder, isWanted) {
  let total = 0;
  /** @type {import("node:fs").Dirent[]} */
  let entries = [];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    // A package for another platform is in the lock file but not on the disk.
    return 0;
  }
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && entry.name !== "node_modules") total += bytesIn(path, isWanted);
    else if (entry.isFile() && isWanted(path)) total += statSync(path).size;
  }
  return total;
}

/** @param {string} folder */
function lockOf(folder) {
  const text = readFileSync(join(folder, "package-lock.json"), "utf8");
  return /** @type {{ packages: Record<string, Locked> }} */ (JSON.parse(text));
}
