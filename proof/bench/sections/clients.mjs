// Clients over HTTP, all of them against the same bare server.

import { fileURLToPath } from "node:url";
import { openClientSubject } from "../lib/client-subject.mjs";
import { hold } from "../lib/contest.mjs";
import { startHttpEcho } from "./gateways.mjs";

const names = ["junctor", "junctor-legacy", "sdk-v1", "sdk-v2", "bare"];

/** @param {import("../lib/run.mjs").Run} run */
export async function runClients(run) {
  const echo = await startHttpEcho();
  try {
    for (const inFlight of run.isQuick ? [16] : [1, 16]) {
      const entries = run.chosen(names).map((name) => ({
        name,
        open: () => openClientSubject(pathOf(name), `http://127.0.0.1:${echo.port}/mcp`, inFlight),
      }));
      run.report(
        await hold({ section: "clients", name: `${inFlight} in flight`, entries, ...run.contest() }),
      );
    }
  } finally {
    await echo.stop();
  }
}

/** @param {string} name */
function pathOf(name) {
  return fileURLToPath(new URL(`../systems/clients/${name}.mjs`, import.meta.url));
}
