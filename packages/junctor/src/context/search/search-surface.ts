import type { Tool } from "@junctor/core/mcp";

/** The names of the tools that a search shows in place of all others. */
export const surfaceNames = {
  search: "search_tools",
  describe: "describe_tools",
  read: "call_read_tool",
  call: "call_tool",
} as const;

/** Most signatures, and most names after them, in one answer. */
export const shownSignatures = 8;
export const maxSignatures = 20;
export const shownInAll = 40;
export const maxDescribed = 5;

/** Servers are named in the description of the search: a model does not look for what it has not heard of. */
const maxServersText = 1400;

/** The tools of a search. They are the same while the servers are. */
export function createSurface(servers: readonly string[], hasReadTool: boolean): readonly Tool[] {
  const { search, describe, read, call } = surfaceNames;
  const name = { type: "string", description: "The tool's name." };
  const args = { type: "object", description: "Its arguments." };
  const calling = { type: "object", properties: { name, arguments: args }, required: ["name"] };
  const ways = hasReadTool ? `${read} or ${call}` : call;
  const tools: readonly Tool[] = [
    {
      name: search,
      description:
        `Finds tools of these servers: ${namesText(servers)}. Say what is to be done, or name a tool. ` +
        `Answers with signatures and more names. Then use ${ways}.`,
      inputSchema: {
        type: "object",
        properties: {
          query: { type: "string", description: "Left out: the servers and how many tools each has." },
          server: { type: "string", description: "Only tools of this server." },
          limit: { type: "integer", minimum: 1, maximum: maxSignatures, description: "Signatures; 8." },
        },
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    {
      name: describe,
      description: "The full definitions of tools, where a signature is not enough.",
      inputSchema: {
        type: "object",
        properties: {
          names: { type: "array", items: { type: "string" }, minItems: 1, maxItems: maxDescribed },
        },
        required: ["names"],
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    ...(hasReadTool
      ? [
          {
            name: read,
            description: "Calls a tool that only reads.",
            inputSchema: calling,
            annotations: { readOnlyHint: true },
          },
        ]
      : []),
    {
      name: call,
      description: hasReadTool ? "Calls any other tool." : "Calls a tool.",
      inputSchema: calling,
      annotations: { destructiveHint: true },
    },
  ];
  return Object.freeze(tools);
}

function namesText(servers: readonly string[]): string {
  let text = "";
  for (const [index, server] of servers.entries()) {
    if (text.length + server.length > maxServersText) return `${text} and ${servers.length - index} more`;
    text += index === 0 ? server : `, ${server}`;
  }
  return text === "" ? "none yet" : text;
}
