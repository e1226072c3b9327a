import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { expect } from "vitest";
import { createDeferred } from "../../../packages/core/src/async/queue.ts";
import type { Status } from "../../../packages/junctor/src/admin/answers.ts";
import { findAdmins } from "../../../packages/junctor/src/cli/serve/admin-client.ts";
import { listenHttp } from "../../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../../packages/server/src/http/node.ts";
import { createRegistry } from "../../../packages/server/src/registry/registry.ts";
import { createServer } from "../../../packages/server/src/wire/server.ts";
import { type CliGateway, startCliGateway } from "../../gateway/support/cli-gateway.ts";

/** `junctor serve --workers` in a process of its own. */
export interface Crew extends CliGateway {
  /** How each worker is, by its number. */
  statuses(): Promise<readonly Status[]>;
}

/** Starts it with a config, and resolves when all workers are up. */
export async function startCrew(file: string, config: object, ...args: readonly string[]): Promise<Crew> {
  writeFileSync(file, JSON.stringify({ ...config, junctor: { admin: { port: 0 }, ...sectionOf(config) } }));
  const gateway = startCliGateway(file, "--port", "0", ...args);
  await expect.poll(() => gateway.output()).toMatch(/Junctor listens on/);
  const statuses = async (): Promise<readonly Status[]> =>
    (await findAdmins())
      .map(({ status }) => status)
      .filter(({ worker }) => worker?.primary === gateway.process.pid)
      .toSorted((one, other) => (one.worker?.number ?? 0) - (other.worker?.number ?? 0));
  return { ...gateway, statuses, [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose]() };
}

function sectionOf(config: object): object {
  return "junctor" in config ? (config.junctor as object) : {};
}

/** Waits until so many workers serve, other than those with the given process numbers. */
export async function untilWorkers(
  crew: Crew,
  count: number,
  gone: readonly number[] = [],
): Promise<readonly Status[]> {
  let found: readonly Status[] = [];
  const look = async (): Promise<number> => {
    found = await crew.statuses().catch(() => []);
    return found.filter(({ pid, state }) => !gone.includes(pid) && state === "ready").length;
  };
  await expect.poll(look).toBe(count);
  return found;
}

/** A server in this process whose tool `hold` answers when the test says so. */
export interface HoldingServer extends AsyncDisposable {
  readonly listener: HttpListener;
  /** The names of the calls that began. */
  readonly begun: readonly string[];
  /** Lets every call end. */
  release(): void;
}

export async function startHoldingServer(): Promise<HoldingServer> {
  const begun: string[] = [];
  const released = createDeferred<void>();
  const registry = createRegistry();
  const input = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
  registry.register("hold", { input }, async ({ name }) => {
    begun.push(String(name));
    await released.promise;
    return `held ${String(name)}`;
  });
  registry.register("echo", { input }, ({ name }) => String(name));
  const listener = await listenHttp(createServer(registry, { name: "holding", version: "1.0.0" }), {
    port: 0,
  });
  return {
    listener,
    begun,
    release: released.resolve,
    [Symbol.asyncDispose]: async () => {
      released.resolve();
      await listener.close();
    },
  };
}

/** Calls a tool on a connection of its own. Resolves with the text of the answer, or the code of the error. */
export function callOnce(port: number, tool: string, args: object): Promise<string> {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: tool, arguments: args, _meta: meta },
  });
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": tool,
  };
  return new Promise((resolve) => {
    const outgoing = request({
      host: "127.0.0.1",
      port,
      path: "/mcp",
      method: "POST",
      headers,
      agent: false,
    });
    outgoing.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    outgoing.on("response", (incoming) => {
      let text = "";
      incoming.setEncoding("utf8").on("data", (chunk: string) => void (text += chunk));
      incoming.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      incoming.on("end", () => resolve(textIn(text) ?? text));
    });
    outgoing.end(body);
  });
}

/** The text of a result, in JSON or in an event. */
function textIn(answer: string): string | undefined {
  const found = /"text":("(?:[^"\\]|\\.)*")/.exec(answer)?.[1];
  return found === undefined ? undefined : (JSON.parse(found) as string);
}
