import { type Naming, defaultNaming } from "@junctor/core/compose";
import { type Tool, definitionOf } from "@junctor/core/mcp";
import { isNamedFor } from "../../catalog/index.ts";
import { estimateTokens, createSearchTools } from "../../context/index.ts";
import { readConfigFile } from "../config/index.ts";
import {
  note,
  type ParsedOf,
  print,
  type Run,
  toSafeLine,
  UsageError,
  watchInterrupt,
} from "../terminal/index.ts";
import { parseDestination } from "./target.ts";
import { withClient } from "./with-client.ts";

/** `junctor cost` */
export const cost: Run<"cost"> = async (parsed) => {
  const [url, stray] = parsed.operands;
  if (stray !== undefined)
    throw new UsageError(
      `cost takes one URL, but got ${JSON.stringify(stray)} as well; the command of a server goes after --`,
    );
  const server = url ?? parsed.flags.server;
  const serverOf =
    parsed.flags.config !== undefined && server === undefined
      ? await createServerOf(parsed)
      : () => "all tools";
  await using destination = await parseDestination(parsed, { server });
  using interruption = watchInterrupt();
  await withClient(destination, interruption, {}, async (client) => {
    const report = measureCost(await client.listTools(), serverOf);
    if (parsed.flags.json) return print(`${JSON.stringify(report, undefined, 2)}\n`);
    await print(describeCost(report));
    await note(
      "Tokens are estimated, as characters divided by 4.4; models count differently, by 15 % and more.\n",
    );
  });
  return 0;
};

/** What the definitions of some tools cost. */
interface CostReport {
  readonly tools: number;
  /** Estimated. */
  readonly tokens: number;
  /** The most expensive first. */
  readonly servers: readonly { readonly name: string; readonly tools: number; readonly tokens: number }[];
  readonly largest: readonly { readonly name: string; readonly tokens: number }[];
  /** The setting that would save most, and how much; undefined where there is little to save. */
  readonly advice: { readonly setting: string; readonly saves: number } | undefined;
}

const shownTools = 20;
/** Saving fewer tokens is not worth a search. */
const worthwhile = 2000;

/** Estimates what a model reads of a list of tools. */
export function measureCost(tools: readonly Tool[], serverOf: (name: string) => string): CostReport {
  const sizes = tools.map((tool) => ({ name: tool.name, tokens: estimateTokens(definitionOf(tool).text) }));
  const byServer = new Map<string, { name: string; tools: number; tokens: number }>();
  for (const { name, tokens } of sizes) {
    const server = serverOf(name);
    const sum = byServer.get(server) ?? { name: server, tools: 0, tokens: 0 };
    byServer.set(server, { name: server, tools: sum.tools + 1, tokens: sum.tokens + tokens });
  }
  const sortByTokens = <T extends { readonly tokens: number }>(items: Iterable<T>): readonly T[] =>
    [...items].toSorted((a, b) => b.tokens - a.tokens);
  const tokens = sizes.reduce((sum, each) => sum + each.tokens, 0);
  const searchTools = createSearchTools([...byServer.keys()], true);
  const saves = tokens - searchTools.reduce((sum, tool) => sum + estimateTokens(JSON.stringify(tool)), 0);
  const setting = '"junctor": { "profiles": { "small": { "tools": "search" } } }';
  return {
    tools: tools.length,
    tokens,
    servers: sortByTokens(byServer.values()),
    largest: sortByTokens(sizes).slice(0, shownTools),
    advice: saves < worthwhile ? undefined : { setting, saves },
  };
}

async function createServerOf(parsed: ParsedOf<"cost">): Promise<(name: string) => string> {
  const { config } = await readConfigFile(parsed);
  const naming: Naming = { ...defaultNaming, separator: config.separator };
  return (name) => config.servers.find((server) => isNamedFor(server, name, naming))?.name ?? "others";
}

/** The report as tables. */
export function describeCost({ tools, tokens, servers, largest, advice }: CostReport): string {
  const share = (part: number): string => `${Math.round((100 * part) / Math.max(1, tokens))} %`;
  const rows = [
    ["server", "tools", "≈tokens", "share"],
    ...servers.map((each) => [each.name, String(each.tools), toNumber(each.tokens), share(each.tokens)]),
    ["in all", String(tools), toNumber(tokens), ""],
  ];
  const tops = [["largest", "≈tokens"], ...largest.map((each) => [each.name, toNumber(each.tokens)])];
  const hint =
    advice === undefined
      ? ""
      : `\nThis saves most, about ${toNumber(advice.saves)} tokens, at /mcp/small:\n  ${advice.setting}\n`;
  return `${toTable(rows)}\n${toTable(tops)}${hint}`;
}

function toNumber(value: number): string {
  return value.toLocaleString("en-US");
}

/** Aligns the first column to the left, the others to the right. */
function toTable(rows: readonly (readonly string[])[]): string {
  const safe = rows.map((row) => row.map(toSafeLine));
  const widths = (safe[0] ?? []).map((_, column) =>
    Math.max(...safe.map((row) => (row[column] ?? "").length)),
  );
  const toLine = (row: readonly string[]): string =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd();
  return safe.map((row) => `${toLine(row)}\n`).join("");
}
