import { type CallRecord, kinds, type StrayQuestion } from "./record.ts";

/** What must not be, with an example each; empty when all is well. */
export interface Verdict {
  readonly violations: readonly string[];
  readonly runs: number;
  readonly twice: number;
}

/** Holds the calls to the lines that the servers wrote: the nonce of each run. */
export function judge(
  records: readonly CallRecord[],
  runs: readonly string[],
  strays: readonly StrayQuestion[],
): Verdict {
  const times = new Map<string, number>();
  for (const nonce of runs) times.set(nonce, (times.get(nonce) ?? 0) + 1);
  const twice = [...times].filter(([, count]) => count > 1).map(([nonce]) => nonce);
  const violations = [
    ...twice.map((nonce) => `${nonce} ran twice`),
    ...strays
      .filter((stray) => !isAllowed(stray, records))
      .map(({ nonce, about }) => `${nonce} was asked the question of another call: ${about}`),
    ...records.flatMap(({ nonce, kind, era, tool, end, atMs, tookMs }) => {
      const when = [atMs, atMs + tookMs].map((ms) => (ms / 1000).toFixed(1)).join(" to ");
      const what = `${nonce} (${era}, ${kind}, ${tool}, ${when} s)`;
      if (end.kind === "wrong") return [`${what}: ${end.what}`];
      if (end.kind === "result" && !times.has(nonce)) return [`${what} has a result and never ran`];
      if (end.kind === "error" && end.delivery === "not_sent" && times.has(nonce))
        return [`${what} is said not to have been sent, and ran: ${end.message}`];
      return [];
    }),
  ];
  return { violations, runs: times.size, twice: twice.length };
}

/** A server may still ask for a call that was given up. The gateway asks the caller that gave it up, and no other. */
function isAllowed({ nonce, about }: StrayQuestion, records: readonly CallRecord[]): boolean {
  const isOwn = nonce.split("-")[0] === about.split("-")[0];
  const asking = records.find((record) => record.nonce === about);
  return isOwn && asking !== undefined && asking.end.kind !== "result";
}

/** The figures as a table of Markdown. */
export function renderFigures(records: readonly CallRecord[]): string {
  const rows = (["modern", "legacy"] as const).flatMap((era) =>
    kinds.flatMap((kind) => {
      const own = records.filter((record) => record.era === era && record.kind === kind);
      if (own.length === 0) return [];
      const count = (test: (record: CallRecord) => boolean): number => own.filter(test).length;
      const delivered = (wanted: string): number =>
        count(({ end }) => end.kind === "error" && end.delivery === wanted);
      const cells = [
        count(({ end }) => end.kind === "result"),
        delivered("not_sent"),
        delivered("outcome_unknown"),
        count(({ end }) => end.kind === "broken"),
        count(({ end }) => end.kind === "wrong"),
      ];
      const longest = Math.max(...own.map(({ tookMs }) => tookMs)) / 1000;
      return [`| ${era}, ${kind} | ${own.length} | ${cells.join(" | ")} | ${longest.toFixed(1)} s |`];
    }),
  );
  return [
    "| calls | made | result | `not_sent` | `outcome_unknown` | connection broke | wrong | longest |",
    "|---|--:|--:|--:|--:|--:|--:|--:|",
    ...rows,
  ].join("\n");
}
