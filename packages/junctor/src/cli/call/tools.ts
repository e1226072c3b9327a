import type { Tool } from "@junctor/core/mcp";
import {
  type Command,
  UsageError,
  watchInterrupt,
  note,
  print,
  clipLine,
  toSafeLine,
} from "../terminal/index.ts";
import { parseDestination, profileFlag, targetFlags } from "./target.ts";
import { namesOf, synopsisOf } from "./tool-arguments.ts";
import { withClient } from "./with-client.ts";

/** `junctor tools` */
export const tools: Command = {
  name: "tools",
  summary: "List the tools of a server, with their arguments as `junctor call` takes them.",
  operands: "[URL|NAME]",
  takesCommand: true,
  flags: {
    json: { help: "the whole definitions, as JSON" },
    server: { value: "URL", help: "the same as the operand (default http://127.0.0.1:7780/mcp)" },
    ...profileFlag,
    ...targetFlags,
  },
  examples: [
    "junctor tools                                         the server that npm start runs",
    'junctor tools https://example.com/mcp --header "Authorization: Bearer $KEY"',
    "junctor tools tcp://127.0.0.1:7781",
    "junctor tools --config .mcp.json                      all servers of a config, as the gateway shows them",
    "junctor tools github --config .mcp.json               one of them by itself",
    "junctor tools -- npx -y @modelcontextprotocol/server-everything",
  ],
  run: async (parsed) => {
    const [url, stray] = parsed.operands;
    if (stray !== undefined)
      throw new UsageError(
        `tools takes one URL, but got ${JSON.stringify(stray)} as well; the command of a server goes after --`,
      );
    if (url !== undefined && parsed.has("server"))
      throw new UsageError("name the server once: as the operand or with --server");
    await using destination = await parseDestination(parsed, { server: url ?? parsed.valueOf("server") });
    using interruption = watchInterrupt();
    await withClient(destination, interruption, { onWarning: warn }, async (client) => {
      const listed = await client.listTools();
      if (parsed.has("json")) return print(`${JSON.stringify(listed, undefined, 2)}\n`);
      const { serverInfo, mode } = await client.agreement();
      const name =
        serverInfo === undefined ? "A server" : toSafeLine(`${serverInfo.name} ${serverInfo.version}`);
      const count = listed.length === 1 ? "1 tool" : `${listed.length} tools`;
      await note(`${name}, protocol ${mode.revision}: ${count}\n`);
      await print(toToolTable(listed, process.stdout.columns ?? Infinity));
    });
    return 0;
  },
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
