import type { Tool } from "../mcp/types.ts";
import { clipLine, toSafeLine } from "./terminal-text.ts";
import { namesOf, synopsisOf } from "./tool-arguments.ts";

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
