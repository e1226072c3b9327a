import { join } from "node:path";
import { systemClock } from "@junctor/core/async";
import { toUsageRows, type Usage, type UsageReport } from "../../admin/index.ts";
import { stateFolder } from "../../config/index.ts";
import { readUsage } from "../../telemetry/index.ts";
import { print, refuseOperands, type Run, UsageError } from "../terminal/index.ts";
import { describeShort, describeTook, toTable } from "./table.ts";

const kinds = ["caller", "tool", "server"] as const;
const maxShown = 50;

/** `junctor usage` */
export const usage: Run<"usage"> = async (parsed) => {
  refuseOperands("usage", parsed);
  const by = kinds.find((kind) => kind === (parsed.flags.by ?? "tool"));
  if (by === undefined) throw new UsageError(`--by needs one of ${kinds.join(", ")}`);
  const given = parsed.flags.since ?? "7d";
  const sinceAt = systemClock.date() - toMs(given);
  const rows = toUsageRows(readUsage(join(stateFolder(), "usage"), sinceAt), by);
  if (parsed.flags.json) {
    const report: Usage = { by, sinceAt, source: "hours", rows };
    await print(`${JSON.stringify(report)}\n`);
  } else await print(describe(rows, by, given));
  return 0;
};

const units: { readonly [unit: string]: number } = { h: 3_600_000, d: 86_400_000 };
const maxMs = 30 * 86_400_000;

/** "24h" and "7d" in milliseconds. */
function toMs(text: string): number {
  const [, count, unit = ""] = /^(\d{1,4})([hd])$/.exec(text) ?? [];
  const ms = Number(count) * (units[unit] ?? Number.NaN);
  if (!(ms > 0 && ms <= maxMs))
    throw new UsageError("--since needs hours or days, at most 30d, such as 24h or 7d");
  return ms;
}

function describe(rows: readonly UsageReport[], by: Usage["by"], since: string): string {
  if (rows.length === 0)
    return `No call was counted in the last ${since}. A gateway counts every minute, unless its config says "history": false.\n`;
  const heads = [by.toUpperCase(), "CALLS", "FAILED", "MEAN", "SLOWEST", "TOKENS IN", "TOKENS OUT"];
  const cells = rows
    .slice(0, maxShown)
    .map(({ name, calls, failed, meanMs, mostMs, tokensIn, tokensOut }) => [
      name,
      String(calls),
      String(failed),
      describeTook(meanMs),
      describeTook(mostMs),
      describeShort(tokensIn),
      describeShort(tokensOut),
    ]);
  const more = rows.length - cells.length;
  const rest = more <= 0 ? "" : `and ${more} more; --json has all\n`;
  return `${toTable([heads, ...cells], process.stdout.columns)}${rest}`;
}
