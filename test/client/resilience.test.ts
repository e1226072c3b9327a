import type { ServerResponse } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect, type ConnectOptions } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import type { CallEvent } from "../../packages/core/src/provider/context.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { FakeHttp, type FakeReply, type HeardRequest, startSse, toReply } from "../support/fake-http.ts";
import { legacyScript, text } from "../support/fake-script.ts";
import { listen } from "../support/http-tools.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

const echo = { message: "" };
const failure = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error);

/** A legacy server with sessions; `react` sees what is not part of the handshake. */
async function meet(
  react: (request: HeardRequest, response: ServerResponse, session: string) => FakeReply | "usual",
  options: ConnectOptions = {},
): Promise<{ server: FakeHttp; client: Client }> {
  let sessions = 0;
  const server = await FakeHttp.listen((request, response) => {
    const { message, headers, verb } = request;
    if (message?.method === "initialize") {
      const reply = toReply(request, legacyScript()(message));
      return {
        ...reply,
        headers: { "content-type": "application/json", "mcp-session-id": `s${++sessions}` },
      };
    }
    const reply = react(request, response, String(headers["mcp-session-id"]));
    if (reply !== "usual") return reply;
    return verb === "POST" ? toReply(request, legacyScript()(message!)) : { status: 405 };
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const client = await connect(server.url, { revision: "2025-11-25", ...options });
  onTestFinished(() => client[Symbol.asyncDispose]());
  return { server, client };
}

describe("an expired session", () => {
  test("that cannot be replaced is an error after one attempt", async () => {
    const { client, server } = await meet(({ message }) =>
      message?.method === "tools/call" ? { status: 404 } : "usual",
    );
    expect(await failure(client.callTool("echo", echo))).toMatchObject({
      name: "SessionExpiredError",
      code: "client.session_expired",
      delivery: "not_sent",
    });
    expect(server.calls("initialize")).toHaveLength(2);
    expect(server.calls("tools/call")).toHaveLength(2);
  });

  test("met by many calls at once is replaced once, and all of them succeed", async () => {
    let expired = "";
    const { client, server } = await meet((_, __, session) =>
      session === expired ? { status: 404 } : "usual",
    );
    await client.callTool("echo", echo);
    expired = "s1";
    const results = await Promise.all(Array.from({ length: 20 }, () => client.callTool("echo", echo)));
    expect(results).toHaveLength(20);
    expect(server.calls("initialize")).toHaveLength(2);
  });

  test("does not disturb a call that was accepted before", async () => {
    let finish: () => void = () => {};
    let expired = "";
    const { client } = await meet((request, response, session) => {
      if (session === expired) return { status: 404 };
      if (request.message?.params?.["name"] !== "slow") return "usual";
      finish = () => {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ jsonrpc: "2.0", id: request.message?.id, result: text("slow") }));
      };
      return undefined;
    });
    const slow = client.callTool("slow");
    await expect.poll(() => finish.name).toBe("finish");
    expired = "s1";
    await client.callTool("echo", echo);
    finish();
    expect(await slow).toEqual(text("slow"));
  });

  test("is not what a 404 for an unknown method means", async () => {
    const { client, server } = await meet(({ message }) =>
      message?.method === "example/x"
        ? { status: 404, body: { jsonrpc: "2.0", id: message.id, error: { code: -32601, message: "no" } } }
        : "usual",
    );
    await expect(client.request("example/x")).rejects.toMatchObject({ rpcCode: -32601 });
    expect(server.calls("initialize")).toHaveLength(1);
  });
});

describe("a stream that breaks", () => {
  const progress = (request: HeardRequest, value: number): object => ({
    jsonrpc: "2.0",
    method: "notifications/progress",
    params: {
      progressToken: (request.message?.params?.["_meta"] as { progressToken?: unknown })?.progressToken,
      progress: value,
    },
  });

  test("is resumed after its last event, without loss or repeat, and the call is sent once", async () => {
    let call: HeardRequest | undefined;
    const { client, server } = await meet((request, response) => {
      if (request.message?.method === "tools/call") {
        call = request;
        const send = startSse(response);
        send({ id: "e1" });
        send({ id: "e2", data: progress(request, 1) });
        setImmediate(() => response.destroy());
        return undefined;
      }
      if (request.verb !== "GET" || call === undefined) return "usual";
      const send = startSse(response);
      if (request.headers["last-event-id"] === "e2") {
        // It breaks again before it brought anything: the id must not be forgotten.
        if (server.heard.filter(({ verb }) => verb === "GET").length === 1) return void response.destroy();
        send({ id: "e3", data: progress(call, 2) });
        send({ id: "e4", data: { jsonrpc: "2.0", id: call.message?.id, result: text("whole") } });
        response.end();
      }
      return undefined;
    });
    const seen: CallEvent[] = [];
    const result = await client.callTool("echo", echo, { onEvent: (event) => void seen.push(event) });
    expect(result).toEqual(text("whole"));
    expect(seen).toMatchObject([{ progress: 1 }, { progress: 2 }]);
    expect(server.calls("tools/call")).toHaveLength(1);
  });

  test("is asked for again no sooner than the server wants", async () => {
    const clock = createVirtualClock();
    let call: HeardRequest | undefined;
    const { client, server } = await meet(
      (request, response) => {
        if (request.message?.method === "tools/call") {
          call = request;
          startSse(response)({ id: "e1", retry: 5000 });
          response.end();
          return undefined;
        }
        if (request.verb !== "GET" || call === undefined) return "usual";
        startSse(response)({
          id: "e2",
          data: { jsonrpc: "2.0", id: call.message?.id, result: text("later") },
        });
        response.end();
        return undefined;
      },
      { clock },
    );
    const result = client.callTool("echo", echo);
    await expect.poll(() => clock.sleeping).toBe(2);
    await clock.advance(4999);
    expect(server.heard.filter(({ verb }) => verb === "GET")).toHaveLength(0);
    await clock.advance(1);
    expect(await result).toEqual(text("later"));
    expect(server.heard.at(-1)?.headers["last-event-id"]).toBe("e1");
  });

  test("and cannot be resumed leaves the outcome unknown, and no call is sent again", async () => {
    const { client, server } = await meet((request, response) => {
      if (request.message?.method !== "tools/call") return request.verb === "GET" ? { status: 404 } : "usual";
      startSse(response)({ id: "e1" });
      setImmediate(() => response.destroy());
      return undefined;
    });
    expect(await failure(client.callTool("echo", echo))).toMatchObject({
      name: "ClosedError",
      delivery: "outcome_unknown",
    });
    expect(server.calls("tools/call")).toHaveLength(1);
    expect(server.calls("initialize")).toHaveLength(1);
  });

  test("again and again is given up", async () => {
    const clock = createVirtualClock();
    const { client, server } = await meet(
      (request, response) => {
        if (request.message?.method === "tools/call") startSse(response)({ id: "e1" });
        else if (request.verb === "GET") startSse(response);
        else return "usual";
        setImmediate(() => response.destroy());
        return undefined;
      },
      { clock },
    );
    let ended: unknown;
    void failure(client.callTool("echo", echo)).then((error) => (ended = error));
    const later = async (): Promise<unknown> => (await clock.advance(500), ended);
    await expect
      .poll(later, { interval: 1 })
      .toMatchObject({ name: "ClosedError", delivery: "outcome_unknown" });
    expect(server.heard.filter(({ verb }) => verb === "GET").length).toBeLessThanOrEqual(6);
  });
});

describe.each(["2025-03-26", "2025-11-25"] as const)(
  "our own server behind a bad network, %s",
  (revision) => {
    test("loses and repeats nothing of a stream that is cut at every event", async () => {
      await using server = await listen();
      await using proxy = await TcpProxy.to(server.port);
      await using client = await connect(proxy.url, {
        revision,
        headers: { host: `127.0.0.1:${server.port}` },
      });
      const words: (string | undefined)[] = [];
      const parts = client.callTool(
        "recite",
        {},
        {
          onEvent: (event) => {
            if (event.kind === "progress") words.push(event.message);
            proxy.cut();
            server.steps.allow();
          },
        },
      );
      server.steps.allow();
      expect(await parts).toMatchObject({ content: [{ type: "text" }] });
      expect(words).toEqual(["one ", "two ", "three"]);
    });
  },
);

describe("a server that accepts and drops at once", () => {
  test("is not stormed by the stream of announcements", async () => {
    const clock = createVirtualClock();
    const { client, server } = await meet(
      (request, response) => {
        if (request.verb !== "GET") return "usual";
        startSse(response);
        response.end();
        return undefined;
      },
      { clock },
    );
    const gets = (): number => server.heard.filter(({ verb }) => verb === "GET").length;
    client.onChange?.(() => {});
    for (let second = 0; second < 60; second++) {
      await clock.advance(1000);
      await expect.poll(() => clock.sleeping).toBe(1);
    }
    expect(gets()).toBeGreaterThanOrEqual(5);
    expect(gets()).toBeLessThanOrEqual(14);
  });

  test("is not stormed by calls: each fails for itself, with one connection each", async () => {
    await using server = await listen();
    await using proxy = await TcpProxy.to(server.port);
    const headers = { host: `127.0.0.1:${server.port}` };
    await using client = await connect(proxy.url, { headers, eras: createEraCache() });
    await client.callTool("echo", echo);
    proxy.isDropping = true;
    proxy.cut();
    const before = proxy.connects;
    const failed = await Promise.all(
      Array.from({ length: 20 }, () => failure(client.callTool("echo", echo))),
    );
    expect(new Set(failed.map((error) => (error as Error).name))).toEqual(new Set(["ClosedError"]));
    expect(proxy.connects - before).toBeLessThanOrEqual(40);
    proxy.isDropping = false;
    expect(await client.callTool("echo", echo)).toMatchObject({ content: [{ text: "" }] });
  });
});

describe("the end", () => {
  test("deletes a legacy session, and ignores a refusal", async () => {
    const { client, server } = await meet(() => "usual");
    await client.callTool("echo", echo);
    await client[Symbol.asyncDispose]();
    await client[Symbol.asyncDispose]();
    expect(server.heard.filter(({ verb }) => verb === "DELETE")).toMatchObject([
      { headers: { "mcp-session-id": "s1", "mcp-protocol-version": "2025-11-25" } },
    ]);
    await expect.poll(() => server.open).toBe(0);
  });

  test("fails the calls that are underway", async () => {
    const { client } = await meet(({ message }) => (message?.method === "tools/call" ? undefined : "usual"));
    await client.listTools();
    const underway = failure(client.callTool("echo", echo));
    const waiting = failure(client.request("example/wait", {}, {}));
    await client[Symbol.asyncDispose]();
    expect(await underway).toMatchObject({ name: "ClosedError" });
    expect(await waiting).toBeInstanceOf(Error);
  });
});
