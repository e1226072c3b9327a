// From spawn to the first right answer, and what a product brings along.

import { footprints } from "../lib/footprint.mjs";
import { openStdioSubject } from "../lib/subjects.mjs";
import { openGateway } from "./gateways.mjs";
import { stdioFile } from "./stdio.mjs";

/** @typedef {import("../lib/run.mjs").Run} Run */

const servers = ["junctor", "sdk-v1", "sdk-v2", "fastmcp", "tmcp", "bare"];
const gatewayNames = ["junctor", "mcp-proxy", "supergateway", "mcp-hub", "bare"];

/** @param {Run} run */
export async function runStartup(run) {
  const rounds = run.isQuick ? 1 : 5;
  run.reportTimes(
    "startup",
    "stdio server, ms to first answer",
    await race(run, run.chosen(servers), rounds, (name) =>
      openStdioSubject(run.load, [stdioFile(name)], { era: "legacy", inFlight: 1 }),
    ),
  );
  run.reportTimes(
    "startup",
    "gateway with 1 stdio upstream, ms to first answer",
    await race(run, run.chosen(gatewayNames), rounds, (name) =>
      openGateway(run.load, name, { kind: "stdio", count: 1, era: "legacy", scenario: "small", url: "" }),
    ),
  );
  run.reportFootprints(footprints(run.chosen));
}

/**
 * @param {Run} run
 * @param {readonly string[]} names
 * @param {number} rounds
 * @param {(name: string) => Promise<{ answerOnce(): Promise<void>, close(): Promise<void> }>} open
 */
async function race(run, names, rounds, open) {
  /** @type {import("../lib/run.mjs").Times[]} */
  const times = names.map((name) => ({ name, ms: [] }));
  for (let round = 0; round < rounds; round++) {
    for (const each of times) {
      run.progress(`start-up: round ${round + 1} of ${rounds}, ${each.name}`);
      if (each.problem !== undefined) continue;
      const started = performance.now();
      try {
        const subject = await open(each.name);
        await subject.answerOnce();
        each.ms.push(performance.now() - started);
        await subject.close();
      } catch (error) {
        each.problem = error instanceof Error ? error.message : String(error);
      }
    }
  }
  return times;
}
