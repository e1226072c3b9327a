// A process with a heap of 256 MB, and a caller whose calls want twice as much.
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { spawnNode } from "../support/child.ts";
import { modernCall, modernPost } from "../support/http-wire.ts";
import { exchange, type RawReply, RawSocket } from "../support/raw-http.ts";

test("calls that would take all memory are refused, others are served, and the process lives", async () => {
  const child = spawnNode("--max-old-space-size=256", "test/fixtures/hungry-server.mjs");
  try {
    const [line] = (await once(createInterface(child.stdout), "line")) as [string];
    const port = Number(line);
    const callAs = (authorization: string, name: string): ReturnType<typeof modernPost> =>
      modernPost(modernCall(name, { text: "hi" }), { authorization });
    expect((await exchange(port, callAs("modest", "echo"))).status).toBe(200);
    const sockets: RawSocket[] = [];
    const replies: RawReply[] = [];
    const refused = (): number => replies.filter((reply) => reply.status === 503).length;
    for (let call = 0; call < 500; call++) {
      const socket = new RawSocket(port);
      sockets.push(socket);
      replies.push(socket.send(callAs("greedy", "hold")));
    }
    // About two hundred of them are let in.
    await expect.poll(refused).toBeGreaterThan(200);
    const one = replies.find((reply) => reply.status === 503)!;
    await one.complete;
    expect(one.headers["retry-after"]).toBe("1");
    expect(one.json).toMatchObject({
      error: { code: -32603, data: { code: "rpc.overloaded", delivery: "not_sent" } },
    });
    await expect.poll(async () => (await exchange(port, callAs("modest", "echo"))).status).toBe(200);
    for (const socket of sockets) socket[Symbol.dispose]();
    // What they held is free again.
    await expect.poll(async () => (await exchange(port, callAs("greedy", "echo"))).status).toBe(200);
    expect(child.exitCode).toBeNull();
  } finally {
    child.kill("SIGKILL");
    await once(child, "close");
  }
});
