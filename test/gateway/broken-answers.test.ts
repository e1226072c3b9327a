// An answer that cannot be read ends the call that waits for it, at once, and no other.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createCallContext } from "../../packages/core/src/provider/context.ts";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import type { Gateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { callTool } from "../support/use-provider.ts";

const file = fileURLToPath(new URL("../fixtures/broken-answers.mjs", import.meta.url));
const { answers, usualResult } = (await import(file)) as {
  readonly answers: { readonly [kind: string]: (id: number) => Buffer };
  readonly usualResult: (method: string, params: unknown) => object;
};
const child = (...args: readonly string[]): object => ({ command: process.execPath, args: [file, ...args] });
const kinds = Object.keys(answers);

const logged: string[] = [];
const write = (facts: object, text: string): void =>
  void logged.push(`${String((facts as { server?: unknown }).server)}: ${text}`);
// A cause that was warned of before is told at a lower level.
const log = { debug: write, info: write, warn: write, error: write };

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request) body += String(chunk);
  return body;
}

/** The same server over HTTP; it answers calls by a JSON body or by an event, as its path says. */
const react = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  if (request.method !== "POST") return void response.writeHead(405).end();
  const { id, method, params } = JSON.parse(await bodyOf(request)) as {
    id?: number;
    method: string;
    params?: { arguments?: { kind: string } };
  };
  if (id === undefined) return void response.writeHead(202).end();
  const kind = params?.arguments?.kind ?? "";
  const bytes =
    method === "server/discover"
      ? Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "no" } }))
      : method === "tools/call"
        ? answers[kind]?.(id)
        : Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, result: usualResult(method, params) }));
  if (bytes === undefined) return;
  const isStream = method === "tools/call" && request.url === "/stream";
  response.writeHead(200, { "content-type": isStream ? "text/event-stream" : "application/json" });
  if (!isStream) return void response.end(bytes);
  response.write(Buffer.concat([Buffer.from("data: "), bytes, Buffer.from("\n\n")]));
};
const web = createServer((request, response) => void react(request, response));

let gateway: Gateway;
beforeAll(async () => {
  web.listen(0, "127.0.0.1");
  await once(web, "listening");
  const { port } = web.address() as AddressInfo;
  const url = (path: string): object => ({ url: `http://127.0.0.1:${port}/${path}` });
  const mcpServers = {
    pipe: child(),
    nested: child("nested-list"),
    stream: url("stream"),
    body: url("body"),
  };
  gateway = await createGateway({ mcpServers }, { log, firstListMs: 20_000 });
  await gateway.ready;
});
afterAll(async () => {
  await gateway.close();
  web.closeAllConnections();
  web.close();
});

async function call(server: string, kind: string, signal?: AbortSignal): Promise<unknown> {
  const context = createCallContext(signal === undefined ? {} : { signal });
  try {
    return (await callTool(gateway.provider, `${server}__work`, { kind }, context)).kind;
  } catch (error) {
    return error;
  }
}

const failed = { code: "upstream.failed", delivery: "outcome_unknown" };

describe.each(["pipe", "stream", "body"])("over a %s", (server) => {
  // Over HTTP an answer may be four times as long.
  test.each(kinds.filter((kind) => server === "pipe" || !kind.startsWith("huge")))(
    "an answer with %s",
    async (kind) => {
      logged.length = 0;
      const controller = new AbortController();
      const others = [call(server, "none", controller.signal), call(server, "none", controller.signal)];
      let ended = 0;
      for (const other of others) void other.then(() => ended++);
      expect(await call(server, kind)).toMatchObject({ ...failed, server });
      expect(ended).toBe(0);
      expect(logged.join("\n")).toContain(`${server}: The server sent an answer that cannot be read`);
      controller.abort(new Error("enough"));
      await Promise.all(others);
    },
  );
});

test("an answer without an id ends the only call there is", async () => {
  expect(await call("pipe", "without id")).toMatchObject(failed);
});

test("words and log lines on the output end no call", async () => {
  expect(await call("pipe", "after words")).toBe("complete");
});

test("a list that is nested too deep fails at once, and is not a reason to wait", () => {
  const status = gateway.status().find(({ name }) => name === "nested");
  expect(status).toMatchObject({ status: "up", code: "not_listed" });
  expect(JSON.stringify(status)).toContain("its tools cannot be listed");
});
