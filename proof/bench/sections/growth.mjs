// How cost grows with tools, upstreams and open streams.

import { hold } from "../lib/contest.mjs";
import { openGateway } from "./gateways.mjs";
import { openServer } from "./servers.mjs";

/** @typedef {import("../lib/run.mjs").Run} Run */

/** @param {Run} run */
export async function runGrowth(run) {
  await growTools(run, [1, 10, 100, 1000]);
  await growUpstreams(run, [1, 10, 50]);
  await growStreams(run, [1, 100, 1000, 5000]);
}

/** @param {Run} run @param {readonly number[]} counts */
async function growTools(run, counts) {
  for (const tools of counts) {
    const entries = run.chosen(["junctor", "sdk-v2", "bare"]).map((name) => ({
      name,
      open: () => openServer(run.load, name, { era: "legacy", scenario: "small", tools }),
    }));
    run.report(await hold({ section: "growth", name: countOf(tools, "tool"), entries, ...run.contest() }));
  }
}

/** @param {Run} run @param {readonly number[]} counts */
async function growUpstreams(run, counts) {
  for (const upstreams of counts) {
    const entries = run.chosen(["junctor", "mcp-hub", "bare"]).map((name) => ({
      name,
      open: () =>
        openGateway(run.load, name, {
          kind: "stdio",
          count: upstreams,
          era: "legacy",
          scenario: "small",
          url: "",
        }),
    }));
    run.report(
      await hold({
        section: "growth",
        name: countOf(upstreams, "stdio upstream"),
        entries,
        ...run.contest(),
      }),
    );
  }
}

/** @param {Run} run @param {readonly number[]} counts */
async function growStreams(run, counts) {
  for (const streams of counts) {
    const entries = run.chosen(["junctor", "sdk-v2", "bare"]).map((name) => ({
      name,
      open: async () => {
        const subject = await openServer(run.load, name, { era: "modern", scenario: "small", tools: 3 });
        try {
          await run.load.listen(subject.key, subject.port, streams);
        } catch (error) {
          await subject.close();
          throw error;
        }
        return subject;
      },
    }));
    run.report(
      await hold({ section: "growth", name: countOf(streams, "open stream"), entries, ...run.contest() }),
    );
  }
}

/** @param {number} count @param {string} noun */
function countOf(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
