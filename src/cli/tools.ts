import { type Command, UsageError } from "./command.ts";
import { watchInterrupt } from "./interrupt.ts";
import { note, print } from "./print.ts";
import { parseDestination, targetFlags } from "./target.ts";
import { toSafeLine } from "./terminal-text.ts";
import { toToolTable } from "./tool-table.ts";
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
