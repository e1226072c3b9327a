// Clients that open their streams as soon as the gateway starts must not make later calls dearer. V8 would take the objects of calls
// for long-lived ones, because those of streams are made by the same lines of code.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { modern, modernCall, modernPost, sse } from "../support/http-wire.ts";
import { bin } from "../support/junctor-bin.ts";
import { RawSocket, toBytes } from "../support/raw-http.ts";

const streams = 1000;
const calls = 20_000;
const connections = 16;

/** A gateway with the demo tools, its clients, and how much memory it had at most. */
async function startGateway() {
  const child = spawn(process.execPath, [bin, "serve", "--port", "0"], {
    cwd: tmpdir(),
    stdio: ["ignore", "pipe", "ignore"],
  });
  const sockets: RawSocket[] = [];
  let output = "";
  let port = 0;
  child.stdout.setEncoding("utf8");
  for await (const text of child.stdout) {
    output += text;
    port = Number(/127\.0\.0\.1:(\d+)\/mcp/.exec(output)?.[1] ?? 0);
    if (port > 0) break;
  }
  const connect = (): RawSocket => {
    const socket = new RawSocket(port);
    sockets.push(socket);
    return socket;
  };
  return {
    openStreams: async () => {
      const filter = { notifications: { toolsListChanged: true } };
      const listen = modernPost(modern("subscriptions/listen", filter), { accept: sse });
      await Promise.all(Array.from({ length: streams }, () => connect().send(listen).head));
    },
    makeCalls: async () => {
      const own = Array.from({ length: connections }, connect);
      const call = toBytes(modernPost(modernCall("add", { a: 1, b: 2 })), `127.0.0.1:${port}`);
      await Promise.all(
        own.map(async (socket) => {
          for (let count = 0; count < calls / connections; count++) await socket.send(call).complete;
        }),
      );
    },
    peakBytes: () =>
      1024 * Number(/VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket[Symbol.dispose]();
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

test.skipIf(process.platform !== "linux")(
  "streams that are opened first cost no more memory than streams that are opened later",
  async () => {
    await using late = await startGateway();
    await late.makeCalls();
    await late.openStreams();
    await late.makeCalls();
    await using early = await startGateway();
    await early.openStreams();
    await early.makeCalls();
    await early.makeCalls();
    // 1.7 times as much without the flag that `junctor serve` sets.
    expect(early.peakBytes() / late.peakBytes()).toBeLessThan(1.3);
  },
);
