import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { FakePipe } from "../support/fake-pipe.ts";
import { legacyScript, modernScript } from "../support/fake-script.ts";

/** A TCP server that does what its test says with each connection. */
async function listen(serve: (socket: Socket) => void): Promise<{ url: string; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    serve(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets };
}

const speak = (socket: Socket, react: ConstructorParameters<typeof FakePipe>[0]): FakePipe => {
  const pipe = new FakePipe(react);
  socket.pipe(pipe.target.writable);
  pipe.target.readable.pipe(socket);
  return pipe;
};

test("a TCP server that hangs up on the probe is connected to again, and spoken to in its own way", async () => {
  let connects = 0;
  const { url, sockets } = await listen((socket) => {
    if (connects++ === 0) socket.once("data", () => socket.destroy());
    else speak(socket, legacyScript());
  });
  const client = await connect(url);
  expect((await client.agreement()).mode.kind).toBe("legacy");
  await client.callTool("echo", { message: "" });
  await client[Symbol.asyncDispose]();
  await expect.poll(() => sockets.size).toBe(0);
  expect(connects).toBe(2);
});

test("a TCP server that went away is connected to again by the next call, after a pause", async () => {
  const clock = createVirtualClock();
  let connects = 0;
  const { url, sockets } = await listen((socket) => {
    connects++;
    speak(socket, modernScript());
  });
  const client = await connect(url, { clock });
  onTestFinished(() => client[Symbol.asyncDispose]());
  await client.callTool("echo", { message: "" });
  for (const socket of sockets) socket.destroy();
  await expect.poll(() => sockets.size).toBe(0);
  const again = client.callTool("echo", { message: "again" });
  await expect.poll(() => clock.sleeping).toBeGreaterThan(0);
  expect(connects).toBe(1);
  await clock.advance(250);
  expect(await again).toMatchObject({ content: [{ type: "text" }] });
  expect(connects).toBe(2);
});

test("a client that is closed while it connects leaves nothing open, and is quick about it", async () => {
  const { url, sockets } = await listen((socket) => void socket.resume());
  const controller = new AbortController();
  const connecting = connect(url, { signal: controller.signal }).catch((error: unknown) => error);
  await expect.poll(() => sockets.size).toBe(1);
  controller.abort(new Error("enough"));
  expect(await connecting).toMatchObject({ message: "enough" });
  await expect.poll(() => sockets.size).toBe(0);
});

test("a TCP address where nobody answers is given up in time", async () => {
  const clock = createVirtualClock();
  // An address of the documentation's own network, which nobody has.
  const connecting = connect("tcp://192.0.2.1:9", { clock, connectTimeoutMs: 1000 }).catch(
    (error: unknown) => error,
  );
  await clock.advance(1000);
  expect(await connecting).toMatchObject({ name: "ConnectError", delivery: "not_sent" });
});
