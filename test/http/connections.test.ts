// Clients that open connections and send half requests lock out nobody.
import { once } from "node:events";
import type { Socket } from "node:net";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { expect, test } from "vitest";
import { createDemoRegistry } from "../../packages/junctor/src/cli/serve/demo.ts";
import { sendAdmin, startAdmin } from "../admin/support/admin.ts";
import { sendHalfRequests } from "../support/half-requests.ts";
import { listen } from "../support/http-tools.ts";
import { modernCall, modernPost } from "../support/http-wire.ts";
import { exchange, type RawReply, RawSocket } from "../support/raw-http.ts";

function destroyAll(sockets: readonly Socket[]): void {
  for (const socket of sockets) socket.destroy();
}

test("while 300 half requests are open at the admin port, 40 of 40 health checks are answered", async () => {
  await using admin = await startAdmin({ mcpServers: {} }, { local: { demo: createDemoRegistry() } });
  const halves = await sendHalfRequests(Number(new URL(admin.adminUrl).port), 300);
  for (let check = 0; check < 40; check++) {
    const reply = await sendAdmin(`${admin.adminUrl}/health`, "", { headers: { connection: "close" } });
    expect(reply.status).toBe(200);
  }
  destroyAll(halves);
});

test.each([
  ["headers", "GET /health HTTP/1.1\r\nHost: 127.0.0.1"],
  ["bodies", "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Length: 9\r\n\r\n{"],
  ["nothing", ""],
])("half requests (%s) do not lock out other clients of the same address", async (_, beginning) => {
  await using at = await listen({ maxConnections: 16 });
  const halves = await sendHalfRequests(at.port, 40, beginning.replace("PORT", String(at.port)));
  for (let call = 0; call < 20; call++) {
    const reply = await exchange(at.port, modernPost(modernCall("echo", { message: "hi" })));
    expect(reply.status).toBe(200);
  }
  destroyAll(halves);
});

test("half handshakes and half requests over TLS do not hold up requests either", async () => {
  const file = (name: string): string => join(import.meta.dirname, "../fixtures/tls", name);
  await using at = await listen({
    maxConnections: 16,
    tls: { cert: file("server.pem"), key: file("server.key") },
  });
  const handshakes = await sendHalfRequests(at.port, 20, "");
  const open = async (text: string): Promise<Socket> => {
    const socket = connectTls({ host: "127.0.0.1", port: at.port, rejectUnauthorized: false });
    socket.on("error", () => {});
    await once(socket, "secureConnect");
    socket.write(text);
    return socket;
  };
  const halves: Socket[] = [];
  for (let half = 0; half < 20; half++) halves.push(await open("GET /health HTTP/1.1\r\n"));
  for (let check = 0; check < 20; check++) {
    const socket = await open(`GET /health HTTP/1.1\r\nHost: 127.0.0.1:${at.port}\r\n\r\n`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toContain("HTTP/1.1 200");
  }
  destroyAll([...handshakes, ...halves]);
});

test("a new connection replaces half requests first, then idle connections, and never one with a call underway", async () => {
  await using at = await listen({ maxConnections: 5 });
  const sockets: RawSocket[] = [];
  const keepBusy = async (key: string): Promise<RawReply> => {
    const socket = new RawSocket(at.port);
    sockets.push(socket);
    const call = socket.send(modernPost(modernCall("wait", { key })));
    await expect.poll(() => at.waits.get(key)).toBe("running");
    return call;
  };
  const call = await keepBusy("one");
  using idle = new RawSocket(at.port);
  const first = await idle.send(modernPost(modernCall("echo", { message: "hi" }))).complete;
  expect(first.status).toBe(200);
  const halves = await sendHalfRequests(at.port, 10);
  const again = await idle.send(modernPost(modernCall("echo", { message: "hi" }))).complete;
  expect(again.status).toBe(200);
  destroyAll(halves);
  for (const key of ["two", "three", "four"]) await keepBusy(key);
  // The idle one made room for the last of them.
  expect(call.isClosed).toBe(false);
  await expect(idle.send(modernPost(modernCall("echo", { message: "hi" }))).complete).rejects.toThrow(
    "The socket closed before",
  );
  for (const socket of sockets) socket[Symbol.dispose]();
});
