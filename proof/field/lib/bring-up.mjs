import { readFileSync } from "node:fs";
import { readStarts, startGateway } from "./gateway.mjs";
import { countByServer, listRaw } from "./raw-list.mjs";

/** @typedef {import("./world.mjs").World} World */
/** @typedef {{ names: string[], meta: Record<string, unknown>, cache: string, seconds: number, starts: ReturnType<typeof readStarts>, missing: string[], problem?: string }} BringUp */

const pauseMs = 2000;

/**
 * Starts a gateway that remembers nothing, waits until every server has listed its tools, and stops it.
 *
 * @param {World} world
 * @param {{ config: string, servers: readonly string[], limitMs: number, progress: (text: string) => void }} options
 * @returns {Promise<BringUp>}
 */
export async function bringUp(world, { config, servers, limitMs, progress }) {
  const begun = performance.now();
  const cache = "bring-up";
  const gateway = await startGateway(world, { config, cache, name: cache });
  let list = { names: /** @type {string[]} */ ([]), meta: {} };
  let missing = [...servers];
  try {
    while (missing.length > 0 && performance.now() - begun < limitMs) {
      list = await listRaw(gateway.url);
      const counts = countByServer(list.names);
      const still = servers.filter((server) => !counts.has(server));
      if (still.length < missing.length)
        progress(`${servers.length - still.length} of ${servers.length} servers, ${list.names.length} tools`);
      missing = still;
      if (missing.length > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    const seconds = Math.round((performance.now() - begun) / 1000);
    return { ...list, cache, seconds, starts: readStarts(gateway), missing };
  } finally {
    const problem = await gateway.stop();
    if (problem !== undefined) progress(`${problem}: ${readFileSync(gateway.log, "utf8").slice(-500)}`);
  }
}
