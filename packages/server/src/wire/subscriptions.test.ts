import { describe, expect, test, vi } from "vitest";
import { type Conversation, talkLegacy, talkModern } from "../../../../test/support/conversation.ts";
import type { Frame } from "../../../../test/support/wire-schema.ts";
import { legacyRevisions } from "../../../core/src/mcp/revision.ts";
import type { Server } from "../../../core/src/mcp/server.ts";
import { emptyListing } from "../../../core/src/provider/listing.ts";
import type { Change, Provider } from "../../../core/src/provider/provider.ts";
import { createPromptRegistry, type PromptRegistry } from "../registry/prompts.ts";
import { createRegistry, type Registry } from "../registry/registry.ts";
import { createResourceRegistry, type ResourceRegistry } from "../registry/resources.ts";
import { createServer, type ServerOptions } from "./server.ts";

const info = { name: "test-server", version: "1" };
const subscriptionId = "io.modelcontextprotocol/subscriptionId";

interface Changing {
  readonly server: Server;
  readonly tools: Registry;
  readonly prompts: PromptRegistry;
  readonly resources: ResourceRegistry;
}

function createChanging(options: ServerOptions = {}): Changing {
  const resources = createResourceRegistry();
  const prompts = createPromptRegistry();
  const tools = createRegistry({ resources, prompts });
  for (const uri of ["x:a", "x:b", "x:folder"]) resources.register(uri, { name: uri }, () => uri);
  return { server: createServer(tools, info, options), tools, prompts, resources };
}

/** Changes everything there is, some of it twice. */
function changeAll({ tools, prompts, resources }: Changing): void {
  tools.register("new", {}, () => "");
  tools.register("newer", {}, () => "");
  prompts.register("new", {}, () => "");
  resources.register("x:new", { name: "new" }, () => "");
  for (const uri of ["x:a", "x:b", "x:a", "x:folder/leaf", "x:folderol"]) resources.updated(uri);
}

/** Opens a listen stream and takes its acknowledgement. */
async function listen(
  client: Conversation,
  notifications: object,
  id: string | number = "listening",
): Promise<{ readonly acknowledged: Frame; readonly ended: Promise<Frame> }> {
  const ended = client.request("subscriptions/listen", { notifications }, id);
  const acknowledged = await client.wire.take(
    ({ params }) => (params as { _meta?: { [key: string]: unknown } })?._meta?.[subscriptionId] === id,
  );
  return { acknowledged, ended };
}

/** What the server has sent unasked once it has answered one more request, as method and URI. */
async function changesOf(client: Conversation): Promise<readonly string[]> {
  await client.result("tools/list");
  return client
    .unasked()
    .map(({ method, params }) => [method?.slice("notifications/".length), (params as { uri?: string })?.uri])
    .map((parts) => parts.filter((part) => part !== undefined).join(" "))
    .toSorted();
}

describe("a listen stream", () => {
  test("is acknowledged first, with what is honoured of the wish", async () => {
    const changing = createChanging();
    await using client = talkModern(changing.server);
    const { acknowledged } = await listen(client, {
      toolsListChanged: true,
      promptsListChanged: false,
      resourceSubscriptions: ["x:a", "x:missing"],
      unheardOf: true,
    });
    expect(acknowledged).toEqual({
      jsonrpc: "2.0",
      method: "notifications/subscriptions/acknowledged",
      params: {
        notifications: { toolsListChanged: true, resourceSubscriptions: ["x:a"] },
        _meta: { [subscriptionId]: "listening" },
      },
    });
    expect(client.wire.frames[0]).toBe(acknowledged);
  });

  test.each([
    ["tools", { toolsListChanged: true }, ["tools/list_changed"]],
    ["prompts", { promptsListChanged: true }, ["prompts/list_changed"]],
    ["resources", { resourcesListChanged: true }, ["resources/list_changed"]],
    ["one resource", { resourceSubscriptions: ["x:b"] }, ["resources/updated x:b"]],
    ["what lies below one", { resourceSubscriptions: ["x:folder"] }, ["resources/updated x:folder/leaf"]],
    ["nothing", {}, []],
  ])("tells of %s and of nothing else", async (_, filter, expected) => {
    const changing = createChanging();
    await using client = talkModern(changing.server);
    await listen(client, filter);
    changeAll(changing);
    await expect(changesOf(client)).resolves.toEqual([...expected, "subscriptions/acknowledged"].toSorted());
  });

  test.each(["text", "1", 1, 0])("marks every frame with its id %j, its type kept", async (id) => {
    const changing = createChanging();
    await using client = talkModern(changing.server);
    const { ended } = await listen(
      client,
      { toolsListChanged: true, resourceSubscriptions: ["x:a", "x:b"] },
      id,
    );
    changeAll(changing);
    await changesOf(client);
    changing.server.drain();
    const { result } = await ended;
    const metas = client.unasked().map(({ params }) => (params as { _meta: object })._meta);
    expect(metas).toHaveLength(4);
    expect(metas.every((meta) => (meta as { [key: string]: unknown })[subscriptionId] === id)).toBe(true);
    expect(result).toMatchObject({ resultType: "complete", _meta: { [subscriptionId]: id } });
  });

  test("stays its own beside another on the same pipe", async () => {
    const changing = createChanging();
    await using client = talkModern(changing.server);
    await listen(client, { toolsListChanged: true }, 1);
    await listen(client, { promptsListChanged: true }, "1");
    changeAll(changing);
    await changesOf(client);
    const told = client
      .unasked()
      .slice(2)
      .map(({ method, params }) => [
        method,
        (params as { _meta: { [key: string]: unknown } })._meta[subscriptionId],
      ]);
    expect(told).toHaveLength(2);
    expect(told).toContainEqual(["notifications/prompts/list_changed", "1"]);
    expect(told).toContainEqual(["notifications/tools/list_changed", 1]);
  });

  test("ends when it is cancelled, and nothing more is sent for it", async () => {
    const changing = createChanging();
    await using client = talkModern(changing.server);
    await listen(client, { toolsListChanged: true });
    client.notify("notifications/cancelled", { requestId: "listening" });
    await client.result("tools/list");
    changeAll(changing);
    await expect(changesOf(client)).resolves.toEqual(["subscriptions/acknowledged"]);
  });

  test("ends with a result that says who we are when the server drains", async () => {
    const { server } = createChanging();
    await using client = talkModern(server);
    const { ended } = await listen(client, { toolsListChanged: true });
    server.drain();
    const { result } = await ended;
    expect(result).toEqual({
      resultType: "complete",
      _meta: { [subscriptionId]: "listening", "io.modelcontextprotocol/serverInfo": info },
    });
  });

  test.each([
    {},
    { notifications: [] },
    { notifications: null },
    { notifications: { resourceSubscriptions: [7] } },
  ])("is refused with -32602 for %j", async (params) => {
    await using client = talkModern(createChanging().server);
    await expect(client.error("subscriptions/listen", params)).resolves.toMatchObject({ code: -32602 });
  });

  test("is refused over the limit, and there is room again when one has ended", async () => {
    await using client = talkModern(createChanging({ maxListens: 1 }).server);
    await listen(client, {}, "first");
    await expect(client.error("subscriptions/listen", { notifications: {} })).resolves.toMatchObject({
      code: -32603,
    });
    client.notify("notifications/cancelled", { requestId: "first" });
    await client.result("tools/list");
    await listen(client, {}, "second");
  });

  test("is not there for legacy clients", async () => {
    await using client = await talkLegacy(createChanging().server, "2025-11-25");
    await expect(client.error("subscriptions/listen", { notifications: {} })).resolves.toMatchObject({
      code: -32601,
    });
  });

  test("leaves out a resource that cannot be watched, and no listener behind", async () => {
    const listeners = new Set<(change: Change) => void>();
    const stopped = vi.fn<() => void>();
    const provider: Provider = {
      list: () => emptyListing,
      call: () => Promise.reject(new Error("none")),
      offers: () => ({ serves: () => true }),
      onChange: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      watch: async ({ name }) => {
        if (name !== "x:good") throw new Error("gone");
        return stopped;
      },
    };
    await using client = talkModern(createServer(provider, info, { onError: () => {}, maxListens: 1 }));
    for (const id of ["first", "second"]) {
      const { acknowledged } = await listen(client, { resourceSubscriptions: ["x:good", "x:bad"] }, id);
      expect(acknowledged.params).toMatchObject({ notifications: { resourceSubscriptions: ["x:good"] } });
      client.notify("notifications/cancelled", { requestId: id });
      await client.result("tools/list");
    }
    expect(listeners.size).toBe(0);
    expect(stopped).toHaveBeenCalledTimes(2);
  });
});

describe("a legacy session", () => {
  test.each(legacyRevisions)("of %s is told of every list that changes, once a change", async (revision) => {
    const changing = createChanging();
    await using client = await talkLegacy(changing.server, revision);
    changeAll(changing);
    await expect(changesOf(client)).resolves.toEqual([
      "prompts/list_changed",
      "resources/list_changed",
      "tools/list_changed",
    ]);
  });

  test("is told of the resources it subscribed to, until it unsubscribes", async () => {
    const { server, resources } = createChanging();
    await using client = await talkLegacy(server, "2025-11-25");
    await expect(client.result("resources/subscribe", { uri: "x:a" })).resolves.toEqual({});
    resources.updated("x:a");
    resources.updated("x:b");
    await expect(changesOf(client)).resolves.toEqual(["resources/updated x:a"]);
    await expect(client.result("resources/unsubscribe", { uri: "x:a" })).resolves.toEqual({});
    resources.updated("x:a");
    await expect(changesOf(client)).resolves.toHaveLength(1);
  });

  test("cannot subscribe to what is not there", async () => {
    await using client = await talkLegacy(createChanging().server, "2025-11-25");
    await expect(client.error("resources/subscribe", { uri: "x:missing" })).resolves.toMatchObject({
      code: -32002,
    });
  });

  test("is told nothing that only another one subscribed to", async () => {
    const { server, resources } = createChanging();
    await using one = await talkLegacy(server, "2025-11-25");
    await using other = await talkLegacy(server, "2025-11-25");
    await one.result("resources/subscribe", { uri: "x:a" });
    resources.updated("x:a");
    await expect(changesOf(one)).resolves.toHaveLength(1);
    await expect(changesOf(other)).resolves.toEqual([]);
  });

  test("ends its watches when it unsubscribes, subscribes twice, shakes hands again or leaves", async () => {
    let watching = 0;
    const { server: _, tools } = createChanging();
    const watch = async (): Promise<() => void> => {
      watching++;
      return () => void watching--;
    };
    const provider: Provider = { ...tools, watch };
    const client = await talkLegacy(createServer(provider, info), "2025-11-25");
    await Promise.all([1, 2, 3].map(() => client.result("resources/subscribe", { uri: "x:a" })));
    expect(watching).toBe(1);
    await client.result("resources/unsubscribe", { uri: "x:a" });
    expect(watching).toBe(0);
    await client.result("resources/subscribe", { uri: "x:b" });
    expect(watching).toBe(1);
    await client[Symbol.asyncDispose]();
    expect(watching).toBe(0);
  });

  test("is told nothing before its handshake", async () => {
    const changing = createChanging();
    await using client = talkModern(changing.server);
    changeAll(changing);
    await expect(changesOf(client)).resolves.toEqual([]);
  });
});
