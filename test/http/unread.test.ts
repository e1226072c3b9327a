// Readers that ask for much and take nothing, and one that reads.
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { listen } from "../support/http-tools.ts";
import { modernCall, modernPost } from "../support/http-wire.ts";
import { exchange, RawSocket, toBytes } from "../support/raw-http.ts";

const mib = 1024 * 1024;

/** Whether a reader that reads at last gets all of its answer. */
function readsAll(socket: Socket): Promise<boolean> {
  let length = 0;
  return new Promise((resolve) => {
    socket
      .on("close", () => resolve(false))
      .on("data", (bytes) => {
        length += bytes.length;
        if (length > 16 * mib) resolve(true);
      });
    socket.resume();
  });
}

test("readers that take nothing are cut when too much waits for them, and one that reads is not", async () => {
  const authenticate = (header: (name: string) => string | undefined): string | undefined =>
    header("authorization");
  await using at = await listen({ authenticate, maxUnreadBytes: 32 * mib });
  let begun = 0;
  at.registry.register("large", {}, () => {
    begun++;
    return "x".repeat(16 * mib);
  });
  const large = (authorization: string): ReturnType<typeof modernPost> =>
    modernPost(modernCall("large"), { authorization });
  const sockets = Array.from({ length: 20 }, () => new RawSocket(at.port));
  try {
    for (const socket of sockets) {
      socket.socket.removeAllListeners("data").pause();
      socket.socket.write(toBytes(large("greedy"), socket.host));
    }
    // What the system holds for a reader does not count, and is less than half of an answer.
    await expect.poll(() => begun).toBe(20);
    const read = await exchange(at.port, large("modest"));
    expect([read.status, read.body.length > 16 * mib]).toEqual([200, true]);
    expect(at.warnings).toEqual([
      expect.stringMatching(/^A client was cut off: its readers leave \d+ bytes unread$/),
    ]);
    const whole = await Promise.all(sockets.map(({ socket }) => readsAll(socket)));
    expect(whole.filter((isWhole) => !isWhole).length).toBeGreaterThanOrEqual(15);
  } finally {
    for (const socket of sockets) socket[Symbol.dispose]();
  }
});
