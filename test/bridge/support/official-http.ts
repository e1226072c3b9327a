import * as v2 from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CreateMessageRequestSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

/** An official client over Streamable HTTP whose user is called Ada. */
export interface OfficialHttpClient {
  /** Calls a tool and gives back its text. */
  call(name: string): Promise<string>;
  close(): Promise<void>;
}

const capabilities = { elicitation: {}, sampling: {} };
const elicited = { action: "accept" as const, content: { name: "Ada" } };
const sampled = {
  role: "assistant" as const,
  model: "a-model",
  content: { type: "text" as const, text: "Pipes, pipes, pipes." },
};
const textOf = (result: unknown): string =>
  (result as { readonly content: readonly { readonly text?: string }[] }).content
    .map(({ text }) => text ?? "")
    .join("");
const urlOf = (port: number): URL => new URL(`http://127.0.0.1:${port}/mcp`);

/** The v1 client, which speaks 2025-11-25. */
export async function connectV1Http(port: number): Promise<OfficialHttpClient> {
  const client = new Client({ name: "sdk-v1", version: "1.0.0" }, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, () => elicited);
  client.setRequestHandler(CreateMessageRequestSchema, () => sampled);
  await client.connect(new StreamableHTTPClientTransport(urlOf(port)));
  return { call: async (name) => textOf(await client.callTool({ name })), close: () => client.close() };
}

/** The v2 client, pinned to the modern revision. */
export async function connectV2Http(port: number): Promise<OfficialHttpClient> {
  const client = new v2.Client(
    { name: "sdk-v2", version: "1.0.0" },
    { capabilities, versionNegotiation: { mode: { pin: "2026-07-28" } } },
  );
  client.setRequestHandler("elicitation/create", () => elicited);
  client.setRequestHandler("sampling/createMessage", () => sampled);
  await client.connect(new v2.StreamableHTTPClientTransport(urlOf(port)));
  return {
    call: async (name) => textOf(await client.callTool({ name, arguments: {} })),
    close: () => client.close(),
  };
}
