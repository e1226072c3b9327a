import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { createDeferred } from "../packages/core/src/async/queue.ts";
import { connectInMemory } from "../packages/core/src/channel/memory.ts";
import { createStreamChannel } from "../packages/core/src/channel/stream-channel.ts";
import { RawJson } from "../packages/core/src/json/raw.ts";
import type { Server } from "../packages/core/src/mcp/server.ts";
import type { Channel } from "../packages/core/src/rpc/channel.ts";
import { toRequestId } from "../packages/core/src/rpc/message.ts";
import { listenTcp } from "../packages/server/src/listen/tcp.ts";
import { createRegistry } from "../packages/server/src/registry/registry.ts";
import { createServer } from "../packages/server/src/wire/server.ts";
import { envelope, talkModern } from "./support/conversation.ts";

const count = 1000;
const nonces = Array.from({ length: count }, (_, index) => `nonce-${index}-${Math.random()}`);

/** A server whose tool answers nobody before all have asked, and then in an order of its own. */
function createMeetingServer(): Server {
  const registry = createRegistry();
  const waiting: (() => void)[] = [];
  registry.register("meet", { input: { type: "object" } }, async (args, { progress }) => {
    const { nonce } = args as { nonce: string };
    const met = createDeferred<void>();
    waiting.push(met.resolve);
    if (waiting.length === count) waiting.toSorted(() => Math.random() - 0.5).forEach((resolve) => resolve());
    await met.promise;
    await progress(1, 1, nonce);
    return nonce;
  });
  return createServer(registry, { name: "test-server", version: "1" });
}

/** Calls under the id and token that every client uses; gives back all nonces that came on this channel. */
async function meet(channel: Channel, nonce: string): Promise<readonly unknown[]> {
  await using _ = channel;
  const params = { name: "meet", arguments: { nonce }, _meta: { ...envelope(), progressToken: 1 } };
  await channel.send({
    kind: "request",
    id: toRequestId(1),
    method: "tools/call",
    params: RawJson.fromValue(params),
  });
  const seen: unknown[] = [];
  for await (const messages of channel) {
    for (const incoming of messages) {
      if (incoming.kind === "notification") seen.push(incoming.params?.at("message")?.value);
      if (incoming.kind !== "result") continue;
      seen.push((incoming.result.value as { content: { text: string }[] }).content[0]?.text);
      return seen;
    }
  }
  return seen;
}

describe("a thousand clients that all use the id 1 at once", () => {
  test("each get their own progress and their own answer in memory", async () => {
    const server = createMeetingServer();
    const seen = await Promise.all(nonces.map((nonce) => meet(connectInMemory(server), nonce)));
    expect(seen).toEqual(nonces.map((nonce) => [nonce, nonce]));
  });

  test("each get their own progress and their own answer over TCP", async () => {
    await using listener = await listenTcp(createMeetingServer(), { port: 0, maxClients: count });
    const { port } = listener;
    const sockets = await Promise.all(nonces.map(() => open(port)));
    const seen = await Promise.all(
      nonces.map((nonce, index) => {
        const socket = sockets[index] as Socket;
        return meet(createStreamChannel(socket, socket), nonce);
      }),
    );
    expect(seen).toEqual(nonces.map((nonce) => [nonce, nonce]));
  });
});

test("calls that share an id on one channel are refused but for one, which gets its own answer", async () => {
  const registry = createRegistry();
  const held = createDeferred<void>();
  const called: string[] = [];
  registry.register("hold", { input: { type: "object" } }, async (args) => {
    const { nonce } = args as { nonce: string };
    called.push(nonce);
    await held.promise;
    return nonce;
  });
  await using client = talkModern(createServer(registry, { name: "test-server", version: "1" }));
  const answers = nonces
    .slice(0, 100)
    .map((nonce) => client.request("tools/call", { name: "hold", arguments: { nonce } }, 1));
  const refused = await Promise.all(answers.slice(0, -1));
  expect(refused).toMatchObject(refused.map(() => ({ id: 1, error: { code: -32600 } })));
  expect(called).toEqual([nonces[0]]);
  held.resolve();
  await expect(answers.at(-1)).resolves.toMatchObject({ result: { content: [{ text: nonces[0] }] } });
});

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1" });
  await once(socket, "connect");
  return socket;
}
