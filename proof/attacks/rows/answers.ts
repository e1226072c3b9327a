import { startTestGateway } from "../../../test/gateway/support/gateway.ts";
import { Callers } from "../../../test/gateway/support/load.ts";
import { startHostile } from "../lib/beside.ts";
import { fixture } from "../lib/gateway.ts";
import { attempt, type Line, type Row, type Scale, toMegabytes } from "../lib/row.ts";

const kinds: readonly (readonly [kind: string, what: string])[] = [
  ["huge", "text without end"],
  ["slow", "one byte each 100 ms"],
  ["nested", "100,000 arrays in each other"],
  ["mis-encoded", "UTF-16 instead of UTF-8"],
  ["doubled", "two members `result`"],
  ["line", "one line of 17 MiB"],
  ["utf8", "bytes that are no UTF-8"],
  ["truncated", "half an answer, then the end"],
  ["html", "a web page"],
  ["other-id", "the id of another call"],
];

/** A server that is silent or slow has this long; the others' answers end their calls before. */
const timeoutMs = 10_000;
const soonMs = 8000;
/** On stdio, an answer that belongs to no call, or says nothing of its call, can only be waited for. */
const mayTimeOut = new Set(["slow", "other-id", "html", "mis-encoded"]);
/** Over HTTP a 17 MiB answer is within the limit of 64 MiB, and served. */
const isServed = (kind: string, transport: string): boolean => kind === "line" && transport === "http";

async function answerBadly(
  kind: string,
  transport: "stdio" | "http",
  calls: number,
): Promise<Omit<Line, "what" | "bound">> {
  using started = await startHostile(kind, transport);
  const mcpServers = {
    hostile: started.entry,
    good: { command: process.execPath, args: [fixture("children/chaos-server.mjs")] },
  };
  await using at = await startTestGateway({ mcpServers, junctor: { servers: { hostile: { timeoutMs } } } });
  using callers = new Callers(at.listener.port, undefined);
  const outcomes = new Map<string, number>();
  let slowestMs = 0;
  let failures = 0;
  const before = process.memoryUsage().rss;
  let most = before;
  for (let call = 0; call < calls; call++) {
    const startedAt = performance.now();
    const ended = callers.call("hostile__work", { nonce: "n" });
    if ((await callers.call("good__work", { nonce: "n" })).kind !== "result") failures++;
    const outcome = await ended;
    slowestMs = Math.max(slowestMs, performance.now() - startedAt);
    most = Math.max(most, process.memoryUsage().rss);
    const key = outcome.kind === "error" ? `${outcome.code} ${outcome.delivery}` : outcome.kind;
    outcomes.set(key, (outcomes.get(key) ?? 0) + 1);
  }
  const limitMs = mayTimeOut.has(kind) ? timeoutMs + soonMs : soonMs;
  const codes = [...outcomes.keys()];
  const isRight = isServed(kind, transport)
    ? codes.every((code) => code === "result" || code.startsWith("upstream."))
    : codes.every((code) => code.startsWith("upstream."));
  return {
    count: `${calls} calls`,
    figure:
      `${[...outcomes].map(([code, times]) => `${times} × ${code}`).join(", ")}; slowest ${(slowestMs / 1000).toFixed(1)} s, ` +
      `${failures} others failed, memory grew by ${toMegabytes(most - before)}`,
    isMet: isRight && slowestMs < limitMs && failures === 0 && most - before < 512 * 2 ** 20,
  };
}

async function run(scale: Scale): Promise<readonly Line[]> {
  const usual = scale === "full" ? kinds.map(([kind]) => kind) : ["nested", "doubled", "utf8", "line"];
  // For those who work on one of them.
  const chosen = process.env["SCORECARD_KINDS"]?.split(",") ?? usual;
  const lines: Line[] = [];
  for (const transport of ["stdio", "http"] as const) {
    for (const [kind, what] of kinds) {
      if (!chosen.includes(kind)) continue;
      const limit = mayTimeOut.has(kind)
        ? `after \`timeoutMs\` (${timeoutMs / 1000} s) at the latest`
        : "at once";
      const line = {
        what: `${what}, ${transport === "http" ? "over HTTP" : "on stdio"}`,
        count: "0 calls",
        bound: isServed(kind, transport)
          ? "the call is served or fails at once, others' failures 0"
          : `the call ends ${limit} with an \`upstream\` error, others' failures 0`,
      };
      lines.push(await attempt(line, () => answerBadly(kind, transport, scale === "full" ? 5 : 1)));
      console.log(`     answers: ${lines.at(-1)!.what}: ${lines.at(-1)!.figure}`);
    }
  }
  return lines;
}

export const row: Row = {
  title: "Bad answers of a hostile server",
  how:
    "A server answers calls with what no client can use. Each of its calls ends by itself; a good server on the same gateway is called at the " +
    "same time.",
  limitMinutes: 30,
  isInShort: true,
  run,
};
