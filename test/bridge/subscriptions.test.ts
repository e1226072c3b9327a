// Changes of resources across eras: who asks for them, how often, and what is heard after the server was lost.

import { describe, expect, test } from "vitest";
import { connectLegacy, HttpWire, modern } from "../support/http-wire.ts";
import { type HttpFront, startHttpFront } from "./support/front.ts";
import { type AskingUpstream, type EraName, startUpstream, type Way } from "./support/upstream.ts";

interface Running extends AsyncDisposable {
  readonly upstream: AskingUpstream;
  readonly front: HttpFront;
}

async function run(era: EraName, way: Way, settings: object = {}): Promise<Running> {
  const upstream = await startUpstream(era, way);
  const front = await startHttpFront({
    mcpServers: { up: upstream.entry },
    junctor: { servers: { up: settings } },
  });
  return {
    upstream,
    front,
    [Symbol.asyncDispose]: async () => {
      await front[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

const pairs = (["legacy", "modern"] as const).flatMap((clientEra) =>
  (["legacy", "modern"] as const).flatMap((upstreamEra) =>
    (["http", "stdio"] as const).map((way) => ({ clientEra, upstreamEra, way })),
  ),
);

describe.each(pairs)(
  "$clientEra clients and a $upstreamEra server over $way",
  ({ clientEra, upstreamEra, way }) => {
    test("share one subscription, which ends with the last of them", async () => {
      await using running = await run(upstreamEra, way);
      const { upstream, front } = running;
      const clients = await Promise.all([1, 2, 3].map(() => front.connect(clientEra)));
      const heard = clients.map(() => [] as string[]);
      const stops = await Promise.all(
        clients.map((client, index) => client.watchResource("note:a", (uri) => heard[index]?.push(uri))),
      );
      expect(upstream.count("subscribe", "note:a")).toBe(1);
      await clients[0]?.callTool("up__touch", { uri: "note:a" });
      for (const uris of heard) await expect.poll(() => uris).toContain("note:a");
      stops[0]?.();
      stops[1]?.();
      await clients[2]?.callTool("up__touch", { uri: "note:a" });
      await expect.poll(() => heard[2]).toHaveLength(2);
      expect(upstream.count("unsubscribe", "note:a")).toBe(0);
      stops[2]?.();
      await expect.poll(() => upstream.count("unsubscribe", "note:a")).toBe(1);
      expect(upstream.count("subscribe", "note:a")).toBe(1);
      await Promise.all(clients.map((client) => client.close()));
    });

    test("leave, and their subscription ends", async () => {
      await using running = await run(upstreamEra, way);
      const { upstream, front } = running;
      const client = await front.connect(clientEra);
      await client.watchResource("note:b", () => {});
      await expect.poll(() => upstream.count("subscribe", "note:b")).toBe(1);
      await client.close();
      await expect.poll(() => upstream.count("unsubscribe", "note:b")).toBe(1);
    });

    test.runIf(way === "stdio").each(["shared", "perSession"])(
      "hear of changes they may have missed when the server (%s) was killed and came back",
      async (sharing) => {
        await using running = await run(upstreamEra, way, { sharing });
        const { upstream, front } = running;
        const client = await front.connect(clientEra);
        const uris: string[] = [];
        await client.watchResource("note:a", (uri) => uris.push(uri));
        await expect.poll(() => upstream.count("subscribe", "note:a")).toBe(1);
        uris.length = 0;
        const pid = (await client.readResource("note:a")).contents[0] as { readonly text: string };
        process.kill(Number(pid.text), "SIGKILL");
        // A modern server is asked again whenever something else is to be heard of as well.
        await expect.poll(() => upstream.count("subscribe", "note:a")).toBeGreaterThan(1);
        await expect.poll(() => uris).toContain("note:a");
        const before = uris.length;
        await client.callTool("up__touch", { uri: "note:a" });
        await expect.poll(() => uris.length).toBeGreaterThan(before);
        await client.close();
      },
    );
  },
);

describe.each<EraName>(["legacy", "modern"])("a listen over a %s server", (era) => {
  test("is acknowledged with what was really subscribed, and nothing else", async () => {
    await using running = await run(era, "http");
    const { upstream, front } = running;
    using wire = new HttpWire(front.listener.port, "2026-07-28");
    const resourceSubscriptions = ["note:a", "note:refused", "note:nowhere", "note:b"];
    const reply = await wire.post(
      modern(
        "subscriptions/listen",
        { notifications: { toolsListChanged: true, resourceSubscriptions } },
        "my-listen",
      ),
    );
    await expect.poll(() => reply.messages.length).toBeGreaterThan(0);
    const [first] = reply.messages;
    expect(first).toMatchObject({
      method: "notifications/subscriptions/acknowledged",
      params: {
        notifications: { toolsListChanged: true },
        _meta: { "io.modelcontextprotocol/subscriptionId": "my-listen" },
      },
    });
    const { notifications } = (first?.params ?? {}) as { notifications: { resourceSubscriptions: string[] } };
    expect(notifications.resourceSubscriptions.toSorted()).toEqual(["note:a", "note:b"]);
    expect(upstream.count("subscribe")).toBe(2);
  });

  test("is notified of a change under its own id", async () => {
    await using running = await run(era, "http");
    const { front } = running;
    using wire = new HttpWire(front.listener.port, "2026-07-28");
    const listens = ["one", "two"].map((id) =>
      wire.post(modern("subscriptions/listen", { notifications: { resourceSubscriptions: ["note:a"] } }, id)),
    );
    const replies = await Promise.all(listens);
    for (const reply of replies) await expect.poll(() => reply.messages.length).toBe(1);
    await wire.ask(modern("tools/call", { name: "up__touch", arguments: { uri: "note:a" } }));
    for (const [index, reply] of replies.entries()) {
      await expect.poll(() => reply.messages.length).toBe(2);
      expect(reply.messages[1]).toMatchObject({
        method: "notifications/resources/updated",
        params: { uri: "note:a", _meta: { "io.modelcontextprotocol/subscriptionId": ["one", "two"][index] } },
      });
    }
  });
});

test.each<EraName>(["legacy", "modern"])(
  "a legacy subscription a %s server refuses is an error",
  async (era) => {
    await using running = await run(era, "http");
    using wire = await connectLegacy(running.front.listener.port);
    const subscribe = (uri: string, id: number): object => ({
      jsonrpc: "2.0",
      id,
      method: "resources/subscribe",
      params: { uri },
    });
    expect(await wire.ask(subscribe("note:a", 1) as never)).toHaveProperty("result");
    expect(await wire.ask(subscribe("note:refused", 2) as never)).toHaveProperty("error");
    expect(await wire.ask(subscribe("note:nowhere", 3) as never)).toHaveProperty("error");
  },
);
