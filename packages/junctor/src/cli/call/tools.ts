import type { Tool } from "@junctor/core/mcp";
import {
  clipLine,
  note,
  print,
  type Run,
  toSafeLine,
  UsageError,
  watchInterrupt,
} from "../terminal/index.ts";
import { parseDestination } from "./target.ts";
import { namesOf, synopsisOf } from "./tool-arguments.ts";
import { withClient } from "./with-client.ts";

/** `junctor tools` */
export const tools: Run<"tools"> = async (parsed) => {
  const [url, stray] = parsed.operands;
  if (stray !== undefined)
    throw new UsageError(
      `tools takes one URL, but got ${JSON.stringify(stray)} as well; the command of a server goes after --`,
    );
  if (url !== undefined && parsed.flags.server !== undefined)
    throw new UsageError("name the server once: as the operand or with --server");
  await using destination = await parseDestination(parsed, { server: url ?? parsed.flags.server });
  using interruption = watchInterrupt();
  await withClient(destination, interruption, { onWarning: warn }, async (client) => {
    const listed = await client.listTools();
    if (parsed.flags.json) return print(`${JSON.stringify(listed, undefined, 2)}\n`);
    const { serverInfo, mode } = await client.agreement();
    const name =
      serverInfo === undefined ? "A server" : toSafeLine(`${serverInfo.name} ${serverInfo.version}`);
    const count = listed.length === 1 ? "1 tool" : `${listed.length} tools`;
    await note(`${name}, protocol ${mode.revision}: ${count}\n`);
    await print(toToolTable(listed, process.stdout.columns ?? Infinity));
  });
  return 0;
};

function warn(text: string): void {
  void note(`junctor: ${toSafeLine(text)}\n`);
}

/** A description that is cut shorter than this says nothing. */
const minDescriptionWidth = 40;
const maxSynopsisWidth = 60;

/**
 * Tools as a table: name, arguments as they are typed, the first line of the description. No line is wider than `width`;
 * where that is little, the types of the arguments are left out.
 */
export function toToolTable(tools: readonly Tool[], width: number): string {
  const names = tools.map((tool) => toSafeLine(tool.name));
  const nameWidth = widest(names);
  const room = width - nameWidth - 4;
  const typed = tools.map(synopsisOf);
  const hasRoom = room - Math.min(maxSynopsisWidth, widest(typed)) >= minDescriptionWidth;
  const synopses = hasRoom ? typed : tools.map(namesOf);
  // Long lists of arguments must not push every description off the screen.
  const limit = hasRoom ? maxSynopsisWidth : Math.max(12, Math.floor(room / 3));
  const synopsisWidth = Math.min(limit, widest(synopses));
  return tools
    .map((tool, index) => {
      const synopsis = clipLine(synopses[index] ?? "", synopsisWidth).padEnd(synopsisWidth);
      const description = toSafeLine(firstLine(tool.description ?? tool.title ?? ""));
      const cells = [(names[index] ?? "").padEnd(nameWidth), synopsis, description];
      return `${clipLine(cells.join("  "), width).trimEnd()}\n`;
    })
    .join("");
}

function firstLine(text: string): string {
  return text.trimStart().split("\n", 1)[0] ?? "";
}

function widest(cells: readonly string[]): number {
  return Math.max(0, ...cells.map((cell) => cell.length));
}
