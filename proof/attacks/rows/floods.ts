import { measureBeside } from "../lib/beside.ts";
import { attempt, type Line, type Row, type Scale, toMegabytes, toText } from "../lib/row.ts";

const kinds: readonly (readonly [kind: string, what: string])[] = [
  ["requests", "requests"],
  ["pings", "pings"],
  ["questions", "questions to the user"],
  ["notifications", "notifications of an unknown kind"],
  ["progress", "progress of no call"],
  ["streamed", "progress without end for each of its calls"],
  ["logs", "log messages"],
  ["changes", "changes of its lists"],
  ["resources", "changes of resources"],
  ["answers", "answers that were not asked for"],
  ["garbage", "lines or events that are no messages"],
  ["tools=10000", "10,000 tools that change after every list"],
  ["tools=100000", "100,000 tools that change after every list"],
];

const maxGrown = 256 * 2 ** 20;

async function run(scale: Scale): Promise<readonly Line[]> {
  const isFull = scale === "full";
  const maxRatio = 2;
  const options = { rounds: 3, callsPerSlice: isFull ? 2000 : 1500 };
  const usual = isFull ? kinds.map(([kind]) => kind) : ["changes"];
  // For those who work on one of them.
  const chosen = process.env["SCORECARD_KINDS"]?.split(",") ?? usual;
  const transports = process.env["SCORECARD_TRANSPORTS"]?.split(",") ?? ["stdio", "http"];
  const lines: Line[] = [];
  for (const transport of ["stdio", "http"] as const) {
    if (!transports.includes(transport)) continue;
    for (const [kind, what] of kinds) {
      if (!chosen.includes(kind)) continue;
      const line = {
        what: `${what}, ${transport === "http" ? "over HTTP" : "on stdio"}`,
        count: "1 server",
        bound: `p99 of the good servers within ${maxRatio} times, others' failures 0, memory grows by at most 256 MB`,
      };
      lines.push(
        await attempt(line, async () => {
          const { ratio, withoutMs, besideMs, medianMs, calls, failures, grownBytes } = await measureBeside(
            kind,
            { ...options, transport },
          );
          return {
            count: `${toText(calls)} calls beside and without it`,
            figure:
              `${ratio.toFixed(2)} times (p99 ${withoutMs.toFixed(2)} ms, beside it ${besideMs.toFixed(2)} ms of the main thread; ` +
              `median ${medianMs.toFixed(1)} ms by the clock), ${failures} failures, memory grew by ${toMegabytes(grownBytes)}`,
            isMet: ratio < maxRatio && failures === 0 && grownBytes <= maxGrown,
          };
        }),
      );
      console.log(`     floods: ${lines.at(-1)!.what}: ${lines.at(-1)!.figure}`);
    }
  }
  return lines;
}

export const row: Row = {
  title: "Floods by a hostile server",
  how:
    "A server sends without pause, over stdio and over HTTP (on the stream of its session), and is called ten times a second. Good servers " +
    "beside it (one in the process of the gateway, one child) are called by clients of both eras, in slices that take turns: beside the hostile server, " +
    "and beside a quiet one in its place. Clients and gateway are one process. A call costs the time for which the main thread of that process ran from the beginning of the " +
    "call to its end, and the clock of the gateway stands still while the process waits for a processor: a busy machine gives the figures of an idle one.",
  limitMinutes: 90,
  isInShort: true,
  run,
};
