import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { listenTcp, type ListenTcpOptions } from "../../packages/server/src/listen/tcp.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { envelope } from "../support/conversation.ts";
import { standsStill } from "../support/stands-still.ts";
import type { Frame } from "../support/wire-schema.ts";

const aborted: string[] = [];
const ended = { large: 0 };

function listen(options: Partial<ListenTcpOptions> = {}): ReturnType<typeof listenTcp> {
  const registry = createRegistry();
  registry.register("echo", { input: { type: "object" } }, (args) => JSON.stringify(args));
  registry.register(
    "wait",
    {},
    (_, { signal }) =>
      new Promise<string>((resolve) =>
        signal.addEventListener("abort", () => {
          aborted.push("wait");
          resolve("aborted");
        }),
      ),
  );
  let turns = 0;
  // Each ends in a turn of its own.
  registry.register("large", {}, async () => {
    await new Promise((resolve) => setTimeout(resolve, turns++));
    ended.large++;
    return "x".repeat(1024 * 1024);
  });
  registry.register("stubborn", {}, () => new Promise<string>(() => {}));
  const server = createServer(registry, { name: "test-server", version: "1" });
  return listenTcp(server, { port: 0, lingerMs: 10, graceMs: 10, ...options });
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1" });
  await once(socket, "connect");
  return socket;
}

function call(socket: Socket, name: string, args: object = {}, id = 1): void {
  const params = { name, arguments: args, _meta: envelope() };
  socket.write(`${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params })}\n`);
}

async function read(socket: Socket): Promise<Frame> {
  let text = "";
  for (;;) {
    const [chunk] = (await once(socket, "data")) as [Buffer];
    text += chunk.toString();
    if (text.endsWith("\n")) return JSON.parse(text) as Frame;
  }
}

/** Resolves when the other side has closed, with or without a goodbye. */
async function closed(socket: Socket): Promise<void> {
  socket.on("error", () => {}).resume();
  if (!socket.closed) await once(socket, "close");
}

describe("listening on TCP", () => {
  test.each(["0.0.0.0", "::", "192.168.1.1", "example.com", "", "127.0.0.1.example.com"])(
    "refuses the address %j, which others may reach, and says what to use",
    async (host) => {
      await expect(listen({ host })).rejects.toThrow(
        `Refusing to listen on ${host}: others can reach that address, and TCP has no authentication. Use 127.0.0.1 or ::1.`,
      );
    },
  );

  test("says when a port is taken", async () => {
    await using listener = await listen();
    await expect(listen({ port: listener.port })).rejects.toThrow("EADDRINUSE");
  });

  test("serves many clients, each on its own", async () => {
    const warned = vi.spyOn(process, "emitWarning");
    await using listener = await listen();
    const sockets = await Promise.all(Array.from({ length: 50 }, () => open(listener.port)));
    sockets.forEach((socket, index) => call(socket, "echo", { index }));
    const answers = await Promise.all(sockets.map(read));
    expect(answers.map(({ result }) => (result as { content: { text: string }[] }).content[0]?.text)).toEqual(
      sockets.map((_, index) => JSON.stringify({ index })),
    );
    expect(warned).not.toHaveBeenCalled();
    sockets.forEach((socket) => socket.destroy());
  });

  test("turns away more clients than it may have", async () => {
    await using listener = await listen({ maxClients: 1 });
    const first = await open(listener.port);
    call(first, "echo");
    await read(first);
    const second = await open(listener.port);
    await closed(second);
    call(first, "echo");
    await expect(read(first)).resolves.toHaveProperty("result");
    first.destroy();
  });

  test("answers a client that has closed its sending half", async () => {
    await using listener = await listen();
    const socket = await open(listener.port);
    call(socket, "echo", { last: true });
    socket.end();
    await expect(read(socket)).resolves.toHaveProperty("result");
    await closed(socket);
  });

  test.each(["destroy", "resetAndDestroy"] as const)(
    "aborts what runs for a client that is gone (%s), and serves the others",
    async (leave) => {
      await using listener = await listen();
      const [gone, stays] = [await open(listener.port), await open(listener.port)];
      aborted.length = 0;
      call(gone, "wait");
      call(gone, "echo");
      await read(gone);
      gone[leave]();
      await expect.poll(() => aborted, { interval: 1 }).toEqual(["wait"]);
      call(stays, "echo");
      await expect(read(stays)).resolves.toHaveProperty("result");
      stays.destroy();
    },
  );

  test("closes in time, and with it every client, whatever they and their tools do", async () => {
    const listener = await listen({ closeMs: 10 });
    const sockets = await Promise.all([1, 2, 3].map(() => open(listener.port)));
    for (const socket of sockets) {
      call(socket, "stubborn");
      call(socket, "echo");
      await read(socket);
    }
    await listener[Symbol.asyncDispose]();
    await Promise.all(sockets.map(closed));
    await expect(open(listener.port)).rejects.toThrow("ECONNREFUSED");
    await expect(listener[Symbol.asyncDispose]()).resolves.toBeUndefined();
  });
});

test("a client that reads nothing until the server stands still gets every answer", async () => {
  await using listener = await listen({ lingerMs: 10_000 });
  const socket = await open(listener.port);
  socket.pause();
  for (let count = 0; count < 100; count++) call(socket, "large", {}, count);
  await expect.poll(() => ended.large).toBeGreaterThan(0);
  await standsStill(() => ended.large);
  expect(ended.large).toBeLessThan(100);
  let [answers, bytes] = [0, 0];
  socket.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    answers += chunk.toString("latin1").split("\n").length - 1;
  });
  socket.resume();
  await expect.poll(() => answers).toBe(100);
  expect(bytes).toBeGreaterThan(100 * 1024 * 1024);
  socket.destroy();
});
