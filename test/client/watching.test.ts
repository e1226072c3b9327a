import { describe, expect, onTestFinished, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { legacyRevisions, modernRevisions, type Revision } from "../../packages/core/src/mcp/revision.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { FakePipe, type Reaction } from "../support/fake-pipe.ts";
import { echoTool, legacyScript, modernScript } from "../support/fake-script.ts";
import { listen } from "../support/http-tools.ts";
import type { Message } from "../support/raw-http.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

const capabilities = {
  tools: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
};

/** The lists that changed, and with `watch` the resources that were updated. */
function changesOf(client: Client): string[] {
  const changes: string[] = [];
  client.onChange?.(({ part }) => changes.push(part));
  return changes;
}

const watch = (client: Client, uri: string, updated: string[] = []): Promise<() => void> =>
  client.watchResource(uri, (each) => updated.push(each));

describe.each<Revision>([...legacyRevisions, ...modernRevisions])(
  "a change on our server in %s",
  (revision) => {
    test.each(["HTTP", "memory"])("is noticed over %s, and the list fetched again", async (way) => {
      const server = await listen();
      onTestFinished(() => server[Symbol.asyncDispose]());
      const target = way === "HTTP" ? `http://127.0.0.1:${server.port}/mcp` : { server: server.server };
      await using client = await connect(target, { revision, eras: createEraCache() });
      const changes = changesOf(client);
      const stop = await watch(client, "note://today", changes);
      const before = await client.listTools();
      // The stream of announcements is opened in the background; changes are made until one is heard of.
      let count = 0;
      const grow = (): readonly string[] => {
        if (changes.length === 0) server.registry.register(`sprout_${count++}`, {}, () => "grown");
        return changes;
      };
      await expect.poll(grow).toContain("tools");
      await expect.poll(async () => (await client.listTools()).length).toBe(before.length + count);

      changes.length = 0;
      server.resources.updated("note://today");
      await expect.poll(() => changes).toContain("note://today");
      stop();
    });
  },
);

/** A modern server whose listen streams are driven by hand. */
function meetModern(): {
  pipe: FakePipe;
  listens: () => readonly Message[];
  acknowledge: (message: Message) => void;
} {
  const first = ({ method }: Message): Reaction | "silence" =>
    method === "subscriptions/listen" ? "silence" : undefined;
  const pipe = new FakePipe(modernScript({ first, capabilities }));
  return {
    pipe,
    listens: () => pipe.received.filter(({ method }) => method === "subscriptions/listen"),
    acknowledge: ({ id, params }) =>
      pipe.send({
        jsonrpc: "2.0",
        method: "notifications/subscriptions/acknowledged",
        params: {
          notifications: params?.["notifications"],
          _meta: { "io.modelcontextprotocol/subscriptionId": id },
        },
      }),
  };
}

const cancelled = ({ received }: FakePipe): readonly unknown[] =>
  received
    .filter(({ method }) => method === "notifications/cancelled")
    .map(({ params }) => params?.["requestId"]);
const wanted = (message: Message | undefined): object => message?.params?.["notifications"] as object;

describe("watching resources of a modern server", () => {
  test("opens a new stream before the old one is closed", async () => {
    const { pipe, listens, acknowledge } = meetModern();
    const client = await connect(pipe.target);
    changesOf(client);
    await expect.poll(() => listens().length).toBe(1);
    expect(wanted(listens()[0])).toEqual({ toolsListChanged: true, resourcesListChanged: true });
    acknowledge(listens()[0]!);

    const watching = watch(client, "a:1");
    await expect.poll(() => listens().length).toBe(2);
    expect(wanted(listens()[1])).toMatchObject({ resourceSubscriptions: ["a:1"] });
    expect(cancelled(pipe)).toEqual([]);
    acknowledge(listens()[1]!);
    const stop = await watching;
    await expect.poll(() => cancelled(pipe)).toEqual([listens()[0]?.id]);

    stop();
    stop();
    await expect.poll(() => listens().length).toBe(3);
    expect(wanted(listens()[2])).not.toHaveProperty("resourceSubscriptions");
  });

  test("by many asks the server once for each resource", async () => {
    const { pipe, listens, acknowledge } = meetModern();
    const client = await connect(pipe.target);
    const watching = [watch(client, "a:1"), watch(client, "a:1"), watch(client, "a:1")];
    await expect.poll(() => listens().length).toBe(1);
    acknowledge(listens()[0]!);
    const [first, second, third] = await Promise.all(watching);
    first?.();
    second?.();
    expect(listens()).toHaveLength(1);
    third?.();
    await expect.poll(() => listens().length).toBe(2);
  });

  test("that refuses fails, and is forgotten", async () => {
    const first = ({ method }: Message): Reaction =>
      method === "subscriptions/listen" ? { error: { code: -32602, message: "no such thing" } } : undefined;
    const pipe = new FakePipe(modernScript({ first, capabilities }));
    const client = await connect(pipe.target);
    await expect(watch(client, "a:1")).rejects.toMatchObject({ rpcCode: -32602 });
    await expect(watch(client, "a:1")).rejects.toMatchObject({ rpcCode: -32602 });
    expect(pipe.methods.filter((method) => method === "subscriptions/listen")).toHaveLength(2);
  });
});

test("a modern stream that breaks is opened again, and then everything may have changed", async () => {
  const clock = createVirtualClock();
  const { pipe, listens, acknowledge } = meetModern();
  const client = await connect(pipe.target, { clock });
  const changes = changesOf(client);
  await expect.poll(() => listens().length).toBe(1);
  acknowledge(listens()[0]!);
  pipe.send({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
  await expect.poll(() => changes).toEqual(["tools"]);
  pipe.send({ jsonrpc: "2.0", id: listens()[0]?.id, result: { resultType: "complete" } });
  await expect.poll(() => clock.sleeping).toBe(1);
  expect(listens()).toHaveLength(1);
  await clock.advance(250);
  await expect.poll(() => listens().length).toBe(2);
  expect(changes).toHaveLength(1);
  acknowledge(listens()[1]!);
  await expect.poll(() => changes.slice(1)).toEqual(["tools", "prompts", "resources"]);
});

test("a modern stream the server cancels on a pipe is opened again", async () => {
  const clock = createVirtualClock();
  const { pipe, listens, acknowledge } = meetModern();
  const client = await connect(pipe.target, { clock });
  changesOf(client);
  await expect.poll(() => listens().length).toBe(1);
  acknowledge(listens()[0]!);
  const cancel = (requestId: unknown): void =>
    pipe.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } });
  cancel("somebody else's");
  await client.listTools();
  expect(clock.sleeping).toBe(0);
  cancel(listens()[0]?.id);
  await expect.poll(() => clock.sleeping).toBe(1);
  await clock.advance(250);
  await expect.poll(() => listens().length).toBe(2);
});

test("a modern server that ends every stream at once is not stormed", async () => {
  const clock = createVirtualClock();
  const pipe = new FakePipe(
    modernScript({
      capabilities,
      first: ({ method }) =>
        method === "subscriptions/listen" ? { result: { resultType: "complete" } } : undefined,
    }),
  );
  const client = await connect(pipe.target, { clock });
  changesOf(client);
  for (let second = 0; second < 120; second++) {
    await clock.advance(1000);
    await expect.poll(() => clock.sleeping, { interval: 1 }).toBe(1);
  }
  const count = pipe.methods.filter((method) => method === "subscriptions/listen").length;
  expect(count).toBeGreaterThanOrEqual(5);
  expect(count).toBeLessThanOrEqual(18);
});

test("a modern server that knows no such stream is not asked again", async () => {
  const clock = createVirtualClock();
  const pipe = new FakePipe(modernScript({ capabilities }));
  const client = await connect(pipe.target, { clock });
  changesOf(client);
  await pipe.heard("subscriptions/listen");
  await clock.advance(600_000);
  expect(pipe.methods.filter((method) => method === "subscriptions/listen")).toHaveLength(1);
});

describe("watching resources of a legacy server", () => {
  const answer = ({ method = "" }: Message): Reaction =>
    method.startsWith("resources/") ? { result: {} } : undefined;

  test("subscribes for the first and unsubscribes for the last", async () => {
    const pipe = new FakePipe(legacyScript({ first: answer, capabilities }));
    const client = await connect(pipe.target);
    const stops = await Promise.all([watch(client, "a:1"), watch(client, "a:1"), watch(client, "b:2")]);
    const said = (): readonly unknown[] =>
      pipe.received
        .filter(({ method }) => method?.startsWith("resources/"))
        .map(({ method, params }) => [method, params?.["uri"]]);
    expect(said()).toEqual([
      ["resources/subscribe", "a:1"],
      ["resources/subscribe", "b:2"],
    ]);
    stops[0]?.();
    stops[0]?.();
    expect(said()).toHaveLength(2);
    stops[1]?.();
    await expect.poll(() => said().at(-1)).toEqual(["resources/unsubscribe", "a:1"]);
  });

  test("again waits for the answer that it is not watched any more: over HTTP the two may change places", async () => {
    const first = (message: Message): Reaction | "silence" =>
      message.method === "resources/unsubscribe" ? "silence" : answer(message);
    const pipe = new FakePipe(legacyScript({ first, capabilities }));
    const client = await connect(pipe.target);
    (await watch(client, "a:1"))();
    const { id } = await pipe.heard("resources/unsubscribe");
    const watching = watch(client, "a:1");
    await watch(client, "b:2");
    const subscribed = (): readonly unknown[] =>
      pipe.received
        .filter(({ method }) => method === "resources/subscribe")
        .map(({ params }) => params?.["uri"]);
    expect(subscribed()).toEqual(["a:1", "b:2"]);
    pipe.send({ jsonrpc: "2.0", id, result: {} });
    await watching;
    expect(subscribed()).toEqual(["a:1", "b:2", "a:1"]);
  });

  test("that refuses fails, and the next may succeed", async () => {
    let isReady = false;
    const pipe = new FakePipe(
      legacyScript({
        capabilities,
        first: ({ method }) => {
          if (method !== "resources/subscribe") return undefined;
          return isReady ? { result: {} } : { error: { code: -32002, message: "no such resource" } };
        },
      }),
    );
    const client = await connect(pipe.target);
    await expect(watch(client, "a:1")).rejects.toMatchObject({ rpcCode: -32002 });
    isReady = true;
    (await watch(client, "a:1"))();
  });
});

test("a legacy stream of announcements that was cut is opened again, and then everything may have changed", async () => {
  await using server = await listen();
  await using proxy = await TcpProxy.to(server.port);
  const headers = { host: `127.0.0.1:${server.port}` };
  await using client = await connect(proxy.url, { revision: "2025-06-18", headers });
  const changes = changesOf(client);
  await expect.poll(() => proxy.open).toBeGreaterThanOrEqual(2);
  await client.listTools();
  proxy.cut();
  server.registry.register("sprout", {}, () => "grown");
  const names = async (): Promise<readonly string[]> => (await client.listTools()).map(({ name }) => name);
  await expect.poll(names).toContain("sprout");
  await expect.poll(() => changes).toContain("tools");
});

test("no listener is notified of what was not announced", async () => {
  const pipe = new FakePipe(legacyScript({ tools: [echoTool], capabilities }));
  const client = await connect(pipe.target);
  const changes = changesOf(client);
  pipe.send(
    { jsonrpc: "2.0", method: "notifications/resources/updated", params: {} },
    { jsonrpc: "2.0", method: "notifications/tea/ready" },
    { jsonrpc: "2.0", method: "notifications/prompts/list_changed" },
  );
  await expect.poll(() => changes).toEqual(["prompts"]);
});
