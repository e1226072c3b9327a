import { defined } from "@junctor/core/options";
import { lastWordsOf, type ServerStatus } from "../servers/index.ts";
import type { AdminSource } from "./admin-source.ts";

/** What is wrong with a server, in the same words everywhere. */
export interface Cause {
  readonly kind: "down" | "slow" | "warning";
  /** In one line: the server's own last words, where it had any. */
  readonly text: string;
  /** What that means. */
  readonly meaning: string;
  /** What to do. */
  readonly advice?: string;
  readonly sinceAt?: number;
  /** Calls to it that failed since then. */
  readonly failed?: number;
}

/** What is wrong with a server; undefined for one that is fine, stopped by a person, or still coming up. */
export function causeOf(source: AdminSource, status: ServerStatus): Cause | undefined {
  const { name, trouble, reason, said = "" } = status;
  if (status.status === "stopped" || status.status === "idle") return undefined;
  if (trouble === undefined) return slownessOf(source, name);
  if (status.status === "starting" && reason === undefined) return undefined;
  const isDown = status.status !== "up";
  const sinceAt = source.days.troubleSince(name);
  const words =
    reason === undefined ? undefined : lastWordsOf(said)?.replace(/^(?:Uncaught )?\w*Error: /, "");
  const text = words ?? reason ?? trouble;
  return defined({
    kind: isDown ? "down" : "warning",
    text,
    meaning: reason === undefined || reason === text ? "" : toSentence(reason),
    advice: source.advise(status),
    sinceAt,
    failed: sinceAt === undefined ? undefined : failuresOf(source, name, sinceAt),
  } as const);
}

/** Points of a chart: the last five minutes, and how many must have calls. */
const recentPoints = 30;
const leastRecent = 3;
const leastUsual = 12;
const slowMs = 1000;
const slowFactor = 4;

/** The cause where a server takes several times as long as in the hour before. */
function slownessOf({ telemetry, clock }: AdminSource, name: string): Cause | undefined {
  const chart = telemetry.charts.ofServer(name, 360);
  if (chart === undefined) return undefined;
  const now = middleOf(chart.p99Ms.slice(-recentPoints), leastRecent);
  const usual = middleOf(chart.p99Ms.slice(0, -recentPoints), leastUsual);
  if (now === undefined || usual === undefined || now < slowMs || now < usual * slowFactor) return undefined;
  const first = chart.p99Ms.findLastIndex((value) => value !== null && value < usual * slowFactor) + 1;
  const sinceAt = clock.date() - (chart.p99Ms.length - first) * 10_000;
  return {
    kind: "slow",
    text: `p99 ${toSeconds(now)}, usually ${toSeconds(usual)}`,
    meaning: "1 call in 100 takes at least as long.",
    sinceAt,
  };
}

function middleOf(values: readonly (number | null)[], least: number): number | undefined {
  const known = values.filter((value) => value !== null).toSorted((one, another) => one - another);
  return known.length < least ? undefined : known[Math.floor(known.length / 2)];
}

function failuresOf({ telemetry, clock }: AdminSource, server: string, sinceAt: number): number | undefined {
  const now = performance.now();
  const since = now - (clock.date() - sinceAt);
  return telemetry.history?.failures.query({ server, since, isFailed: true, limit: 0, bars: 1, now }).failed;
}

function toSentence(reason: string): string {
  return `${reason[0]?.toUpperCase() ?? ""}${reason.slice(1)}.`;
}

function toSeconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
