// Servers on pipes.

import { fileURLToPath } from "node:url";
import { hold } from "../lib/contest.mjs";
import { openStdioSubject } from "../lib/subjects.mjs";

/** @type {Record<import("../load/envelope.mjs").Era, string[]>} */
const names = { legacy: ["junctor", "sdk-v1", "sdk-v2", "bare"], modern: ["junctor", "sdk-v2", "bare"] };

/** @param {import("../lib/run.mjs").Run} run */
export async function runStdio(run) {
  for (const era of /** @type {const} */ (["legacy", "modern"])) {
    if (run.isQuick && era === "modern") continue;
    for (const inFlight of run.isQuick ? [32] : [1, 32]) {
      const entries = run.chosen(names[era]).map((name) => ({
        name,
        open: () => openStdioSubject(run.load, [stdioFile(name)], { era, inFlight }),
      }));
      run.report(
        await hold({ section: "stdio", name: `${inFlight} in flight, ${era}`, entries, ...run.contest() }),
      );
    }
  }
}

/** @param {string} name */
export function stdioFile(name) {
  return fileURLToPath(new URL(`../systems/stdio/${name}.mjs`, import.meta.url));
}
