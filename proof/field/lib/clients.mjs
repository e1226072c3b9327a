/**
 * @typedef {object} FieldClient
 * @property {string} name the program in clients/ that drives it
 * @property {string} title
 * @property {string} package
 * @property {readonly ("http" | "stdio")[]} transports how it can reach a gateway
 * @property {number} [maxCalls] how many of the calls it makes, if not all
 * @property {string} [remark]
 */

/** @type {readonly FieldClient[]} */
export const clients = [
  {
    name: "sdk-v1",
    title: "official SDK v1",
    package: "@modelcontextprotocol/sdk",
    transports: ["http", "stdio"],
  },
  {
    name: "sdk-v2",
    title: "official SDK v2",
    package: "@modelcontextprotocol/client",
    transports: ["http", "stdio"],
    remark: "negotiates, and so speaks the modern protocol",
  },
  {
    name: "inspector",
    title: "Inspector CLI",
    package: "@modelcontextprotocol/inspector",
    transports: ["http", "stdio"],
    maxCalls: 10,
    remark:
      "each command is a process and a connection of its own: over stdio, eleven gateways; so it makes the first ten calls only",
  },
  {
    name: "langchain",
    title: "LangChain adapters",
    package: "@langchain/mcp-adapters",
    transports: ["http", "stdio"],
    remark: "loads its tools once and never lists again",
  },
  { name: "ai-sdk", title: "AI SDK", package: "@ai-sdk/mcp", transports: ["http", "stdio"] },
  {
    name: "fastmcp",
    title: "fastmcp's client",
    package: "mcp-client",
    transports: ["http", "stdio"],
    remark: "`fastmcp` itself has no client; this is the one of its author",
  },
  {
    name: "mcporter",
    title: "mcporter",
    package: "mcporter",
    transports: ["http", "stdio"],
    remark: "by the runtime that its command line is made of",
  },
  {
    name: "mcp-remote",
    title: "mcp-remote",
    package: "mcp-remote",
    transports: ["http"],
    remark: "a bridge from stdio to a URL, driven by the official SDK v1; it starts no servers",
  },
  {
    name: "openai-agents",
    title: "OpenAI agents",
    package: "@openai/agents",
    transports: ["http", "stdio"],
    remark: "with `clientSessionTimeoutSeconds: 60`; by default it gives up on a list after 5 s",
  },
  { name: "mastra", title: "Mastra", package: "@mastra/mcp", transports: ["http", "stdio"] },
];
