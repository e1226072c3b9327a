import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import type { Server } from "../../packages/core/src/mcp/server.ts";
import { serveStream } from "../../packages/server/src/listen/tcp.ts";
import { assertValidFrame, type Frame } from "../support/wire-schema.ts";

/** An answer as it stood on its line. */
export interface Answer {
  readonly jsonrpc: "2.0";
  readonly id?: string | number;
  readonly result?: { readonly [member: string]: unknown };
  readonly error?: { readonly code: number; readonly message: string };
}

const revision = "2025-11-25";

/** The handshake every legacy conversation starts with. */
export const initialize: Frame = {
  jsonrpc: "2.0",
  id: "init",
  method: "initialize",
  params: { protocolVersion: revision, capabilities: {}, clientInfo: { name: "seed", version: "1" } },
};

/** Writes lines to a served pair of byte streams, ends the input, and gives back every line that came out. */
export async function converse(
  server: Server,
  lines: readonly (string | Frame)[],
): Promise<readonly Answer[]> {
  const input = new PassThrough();
  const output = new PassThrough();
  const served = serveStream(server, input, output);
  for (const line of lines) input.write(`${typeof line === "string" ? line : JSON.stringify(line)}\n`);
  input.end();
  const answers: Answer[] = [];
  for await (const line of createInterface({ input: output })) answers.push(JSON.parse(line) as Answer);
  await served;
  for (const answer of answers) assertValidFrame("server", revision, requestOf(answer, lines), answer);
  return answers;
}

/** A conversation after the handshake; its own answer is left out. */
export async function converseInitialized(
  server: Server,
  lines: readonly (string | Frame)[],
): Promise<readonly Answer[]> {
  const [, ...answers] = await converse(server, [
    initialize,
    { jsonrpc: "2.0", method: "notifications/initialized" },
    ...lines,
  ]);
  return answers;
}

/** A request with the params of its method. */
export function request(id: string | number, method: string, params: object = {}): Frame {
  return { jsonrpc: "2.0", id, method, params };
}

/** A call of a tool. */
export function call(id: string | number, name: string, args: object = {}): Frame {
  return request(id, "tools/call", { name, arguments: args });
}

function requestOf({ id }: Answer, lines: readonly (string | Frame)[]): Frame | undefined {
  if (id === undefined) return undefined;
  const isAsked = (line: string | Frame): line is Frame => typeof line !== "string" && line.id === id;
  return lines.find(isAsked);
}
