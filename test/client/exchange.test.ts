import { once } from "node:events";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Agent } from "undici";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  exchange,
  type OutgoingRequest,
  type ReplySink,
  toTarget,
  WholeReply,
} from "../../packages/client/src/http/exchange.ts";
import { fromSignal } from "../../packages/core/src/async/deadline.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";

async function listen(
  react: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ url: URL; dispatcher: Agent; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>();
  const server = createServer(react).on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const dispatcher = new Agent();
  onTestFinished(async () => {
    await dispatcher.destroy();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: new URL(`http://127.0.0.1:${port}/a?b=c`), dispatcher, sockets };
}

async function fetchWhole(dispatcher: Agent, request: OutgoingRequest): Promise<WholeReply> {
  const reply = new WholeReply(1024);
  await exchange(dispatcher, request, reply);
  return reply;
}

const ignore: ReplySink = { head: () => {}, chunk: () => false };

describe("an exchange", () => {
  test("sends what it was given, and reads the response whole", async () => {
    const { url, dispatcher } = await listen((request, response) => {
      response.writeHead(207, {
        "x-said": `${request.method} ${request.url} ${String(request.headers["x-a"])}`,
      });
      request.pipe(response);
    });
    const reply = await fetchWhole(dispatcher, {
      to: toTarget(url),
      method: "POST",
      headers: ["x-a", "1"],
      body: "ü",
    });
    expect(reply.status).toBe(207);
    expect(reply.headers["x-said"]).toBe("POST /a?b=c 1");
    expect(Buffer.from(reply.body).toString()).toBe("ü");
  });

  test("follows no redirect", async () => {
    const { url, dispatcher } = await listen((_, response) =>
      response.writeHead(307, { location: "http://127.0.0.1:9/" }).end(),
    );
    expect((await fetchWhole(dispatcher, { to: toTarget(url), method: "GET", headers: [] })).status).toBe(
      307,
    );
  });

  test("that has enough is over, and its socket is used again once the rest has come", async () => {
    let finish: () => void = () => {};
    const { url, dispatcher, sockets } = await listen((_, response) => {
      response.write("enough");
      finish = () => response.end("more");
    });
    const sink: ReplySink = { head: () => {}, chunk: () => true };
    for (let turn = 0; turn < 3; turn++) {
      await exchange(dispatcher, { to: toTarget(url), method: "GET", headers: [] }, sink);
      finish();
      await expect.poll(() => dispatcher.stats[url.origin]?.running ?? 0).toBe(0);
    }
    expect(sockets.size).toBe(1);
  });

  test("that has enough does not wait for the rest forever", async () => {
    const clock = createVirtualClock();
    const { url, dispatcher, sockets } = await listen((_, response) => response.write("enough"));
    const sink: ReplySink = { head: () => {}, chunk: () => true };
    await exchange(dispatcher, { to: toTarget(url), method: "GET", headers: [] }, sink, { clock });
    expect(sockets.size).toBe(1);
    await clock.advance(1000);
    await expect.poll(() => sockets.size).toBe(0);
  });

  test("that is aborted rejects with the reason and closes its socket", async () => {
    const { url, dispatcher, sockets } = await listen((_, response) => response.write("x"));
    const controller = new AbortController();
    const sent = new Promise<void>((resolve) => {
      const { signal } = controller;
      const sink = { head: () => resolve(), chunk: () => false };
      const ended = exchange(
        dispatcher,
        { to: toTarget(url), method: "GET", headers: [], stop: fromSignal(signal) },
        sink,
      );
      ended.catch(() => {});
    });
    await sent;
    controller.abort(new Error("enough"));
    await expect.poll(() => sockets.size).toBe(0);
    const late = exchange(
      dispatcher,
      { to: toTarget(url), method: "GET", headers: [], stop: fromSignal(controller.signal) },
      ignore,
    );
    await expect(late).rejects.toThrow("enough");
  });

  test("whose sink throws ends with that", async () => {
    const { url, dispatcher, sockets } = await listen((_, response) => response.write("x".repeat(100)));
    const ended = exchange(dispatcher, { to: toTarget(url), method: "GET", headers: [] }, new WholeReply(10));
    await expect(ended).rejects.toThrow(/more than 10 bytes/);
    await expect.poll(() => sockets.size).toBe(0);
  });

  test("says whether the request had left when the network failed", async () => {
    const { url, dispatcher } = await listen((request) => request.socket.resetAndDestroy());
    let isSent = false;
    const request = { to: toTarget(url), method: "GET", headers: [], onSent: () => (isSent = true) } as const;
    await expect(exchange(dispatcher, { ...request, headers: [] }, ignore)).rejects.toMatchObject({
      delivery: "outcome_unknown",
    });
    expect(isSent).toBe(true);
    const nowhere = new URL("http://127.0.0.1:1/");
    const lost = exchange(dispatcher, { to: toTarget(nowhere), method: "GET", headers: [] }, ignore);
    await expect(lost).rejects.toMatchObject({ delivery: "not_sent" });
  });

  test("with a header that cannot be sent fails without having been sent", async () => {
    const { url, dispatcher } = await listen((_, response) => response.end());
    const bad = exchange(
      dispatcher,
      { to: toTarget(url), method: "GET", headers: ["x", "a\r\nb: c"] },
      ignore,
    );
    await expect(bad).rejects.toMatchObject({ delivery: "not_sent" });
  });
});
