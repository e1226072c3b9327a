import { measureBeside, startHostile } from "../lib/beside.ts";
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
  // With more calls, fewer than one in a hundred meets the start of the server, which is no flood.
  const options = { rounds: 3, callsPerSlice: isFull ? 3000 : 1500, isCalled: true };
  const usual = isFull ? kinds.map(([kind]) => kind) : ["changes"];
  // For those who work on one of them.
  const chosen = process.env["SCORECARD_KINDS"]?.split(",") ?? usual;
  const lines: Line[] = [];
  for (const transport of ["stdio", "http"] as const) {
    for (const [kind, what] of kinds) {
      if (!chosen.includes(kind)) continue;
      const line = {
        what: `${what}, ${transport === "http" ? "over HTTP" : "on stdio"}`,
        count: "1 server",
        bound: `p99 of the good servers within ${maxRatio} times, others' failures 0, memory grows by at most 256 MB`,
      };
      lines.push(
        await attempt(line, async () => {
          const { entry, end } = await startHostile(kind, transport);
          try {
            const { ratio, withoutMs, besideMs, medianMs, share, calls, failures, grownBytes } =
              await measureBeside(entry, options);
            return {
              count: `${toText(calls)} calls beside and without it`,
              figure:
                `${ratio.toFixed(2)} times (p99 ${withoutMs.toFixed(2)} ms, beside it ${besideMs.toFixed(2)} ms of processor time; ` +
                `median ${medianMs.toFixed(1)} ms by the clock, ${(100 * share).toFixed(0)} % of it on a processor), ${failures} failures, memory grew by ${toMegabytes(grownBytes)}`,
              isMet: ratio < maxRatio && failures === 0 && grownBytes <= maxGrown,
            };
          } finally {
            end();
          }
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
    "beside it (one in the process of the gateway, one child) are called by clients of both eras, in slices with and without the hostile one that " +
    "take turns. A call costs the processor time of clients and gateway from its beginning to its end.",
  limitMinutes: 90,
  isInShort: true,
  run,
};
