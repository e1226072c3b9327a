// Profiles, each at a path of its own beside the gateway's.
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { elicit } from "../../packages/core/src/mcp/question.ts";
import { inputRequired } from "../../packages/core/src/provider/content.ts";
import { createCallContext } from "../../packages/core/src/provider/context.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createResourceRegistry } from "../../packages/server/src/registry/resources.ts";
import {
  HttpWire,
  initializeOf,
  modern,
  modernCall,
  modernPost,
  postOf,
  toPairs,
} from "../support/http-wire.ts";
import { exchange, type RawReply, RawSocket } from "../support/raw-http.ts";
import { listTools } from "../support/use-provider.ts";
import type { Frame } from "../support/wire-schema.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";

const keyOf = (name: string): string => `${name}-0123456789-abcdefgh`;
const bearer = (name: string): { readonly authorization: string } => ({
  authorization: `Bearer ${keyOf(name)}`,
});
const sha256 = (name: string): string => createHash("sha256").update(keyOf(name)).digest("hex");

const profiles = {
  reading: { allow: ["read_*", "notes__*"], instructions: "Read, and write nothing." },
  writing: { deny: ["read_*"] },
};
const withProfiles = (junctor: object = {}): object => ({
  mcpServers: {},
  junctor: { profiles, ...junctor },
});

interface Started extends TestGateway {
  touch(uri: string): void;
}

async function start(junctor: object = {}): Promise<Started> {
  const resources = createResourceRegistry();
  for (const name of ["a", "b"]) resources.register(`note://${name}`, { name }, () => name);
  const notes = createRegistry({ resources });
  for (const name of ["read_note", "write_note"]) notes.register(name, { description: name }, () => name);
  notes.register("write_asking", { description: "Asks for a name." }, (_, { answers, state }) => {
    const asked = elicit("What is your name?", { name: { type: "string" } }, ["name"]);
    return answers.elicited("name") === undefined
      ? inputRequired({ name: asked }, { step: 1 })
      : JSON.stringify(state);
  });
  const at = await startTestGateway(withProfiles(junctor), {
    local: { notes },
  });
  return Object.assign(at, { touch: (uri: string) => resources.updated(uri) });
}

const at = (path: string, port: number, revision: "2025-11-25" | "2026-07-28" = "2026-07-28"): HttpWire =>
  new HttpWire(port, revision, path);

async function namesAt(wire: HttpWire, headers = {}): Promise<readonly string[]> {
  const list =
    wire.revision === "2026-07-28" ? modern("tools/list") : { jsonrpc: "2.0", id: 1, method: "tools/list" };
  const { result } = await wire.ask(list, headers);
  return (result!["tools"] as readonly { readonly name: string }[]).map(({ name }) => name);
}

describe.each(["2026-07-28", "2025-11-25"] as const)("over %s", (revision) => {
  const open = async (path: string, port: number): Promise<HttpWire> => {
    const wire = at(path, port, revision);
    if (revision === "2025-11-25") await wire.initialize();
    return wire;
  };
  const call = (name: string): Parameters<HttpWire["ask"]>[0] =>
    revision === "2026-07-28"
      ? modernCall(name)
      : { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: {} } };

  test("a profile lists and calls its part, and the plain path everything", async () => {
    await using gateway = await start();
    const { port } = gateway.listener;
    using all = await open("/mcp", port);
    using reading = await open("/mcp/reading", port);
    using writing = await open("/mcp/writing", port);
    expect(await namesAt(all)).toEqual(expect.arrayContaining(["read_note", "write_note"]));
    expect(await namesAt(reading)).toEqual(["read_note"]);
    expect(await namesAt(writing)).not.toContain("read_note");
    expect((await reading.ask(call("read_note"))).result).toMatchObject({ content: [{ text: "read_note" }] });
    expect((await reading.ask(call("write_note"))).error).toMatchObject({ code: -32602 });
    expect((await writing.ask(call("read_note"))).error).toMatchObject({ code: -32602 });
  });

  test("a profile says its own instructions", async () => {
    await using gateway = await start();
    using wire = at("/mcp/reading", gateway.listener.port, revision);
    const begin = revision === "2026-07-28" ? modern("server/discover") : initializeOf(revision);
    expect((await wire.ask(begin)).result).toMatchObject({ instructions: "Read, and write nothing." });
  });
});

test("a path that names no profile is 404, with each method and spelling", async () => {
  await using gateway = await start();
  const { port } = gateway.listener;
  const paths = [
    "nothing",
    "Reading",
    "reading/",
    "reading/x",
    "",
    "%ff",
    "%",
    "..%2f",
    "__proto__",
    "constructor",
  ];
  for (const path of paths.map((name) => `/mcp/${name}`)) {
    for (const method of ["POST", "GET", "DELETE"]) {
      const { headers, body } = modernPost(modern("tools/list"));
      const reply = await exchange(port, {
        method,
        path,
        headers: headers!,
        body: method === "POST" ? body! : "",
      });
      expect([path, method, reply.status]).toEqual([path, method, 404]);
    }
  }
  expect((await exchange(port, { method: "PUT", path: "/mcp/reading" })).status).toBe(405);
});

test("a session of one mount is not known at another", async () => {
  await using gateway = await start();
  const { port } = gateway.listener;
  using reading = at("/mcp/reading", port, "2025-11-25");
  await reading.initialize();
  const ping = { jsonrpc: "2.0", id: 3, method: "ping" };
  const id = { "mcp-session-id": reading.sessionId };
  for (const path of ["/mcp", "/mcp/writing"]) {
    expect((await exchange(port, { ...postOf(ping, id), path })).status).toBe(404);
    const headers = toPairs({ accept: "text/event-stream", ...id });
    expect((await exchange(port, { method: "GET", path, headers })).status).toBe(404);
    expect((await exchange(port, { method: "DELETE", path, headers })).status).toBe(404);
  }
  expect((await reading.ask(ping)).result).toEqual({});
  using plain = at("/mcp", port, "2025-11-25");
  await plain.initialize();
  const plainId = { "mcp-session-id": plain.sessionId };
  expect((await exchange(port, { ...postOf(ping, plainId), path: "/mcp/reading" })).status).toBe(404);
});

test("the state of a question that one mount sealed opens at no other", async () => {
  await using gateway = await start();
  const { port } = gateway.listener;
  const name = "write_asking";
  const capabilities = { elicitation: { form: {} } };
  const meta = { "io.modelcontextprotocol/clientCapabilities": capabilities };
  using writing = at("/mcp/writing", port);
  const asked = await writing.ask(modernCall(name, {}, { _meta: meta }));
  const { requestState, inputRequests } = asked.result as unknown as {
    readonly requestState: string;
    readonly inputRequests: object;
  };
  const inputResponses = Object.fromEntries(
    Object.keys(inputRequests).map((key) => [key, { action: "accept", content: { name: "Ada" } }]),
  );
  const retry = modernCall(name, {}, { _meta: meta, requestState, inputResponses });
  using plain = at("/mcp", port);
  expect((await plain.ask(retry)).error).toMatchObject({ code: -32602 });
  expect((await writing.ask(retry)).error).toBeUndefined();
});

test("a watch is notified of the resources of its mount only", async () => {
  await using gateway = await start({
    profiles: { some: { deny: ["notes__note://b"] } },
  });
  const { port } = gateway.listener;
  const filter = { notifications: { resourceSubscriptions: ["note://a", "note://b"] } };
  using some = at("/mcp/some", port);
  using plain = at("/mcp", port);
  const streams = [some, plain].map((wire) => wire.open(modern("subscriptions/listen", filter, 7)).reply);
  for (const stream of streams) await stream.message(1);
  gateway.touch("note://b");
  gateway.touch("note://a");
  const heard = ({ messages }: RawReply): readonly unknown[] =>
    messages.flatMap(({ method, params }) =>
      method === "notifications/resources/updated" ? [params?.["uri"]] : [],
    );
  await expect.poll(() => heard(streams[1]!)).toEqual(["note://b", "note://a"]);
  await expect.poll(() => heard(streams[0]!)).toEqual(["note://a"]);
});

test("HTTP+SSE reaches a profile too", async () => {
  await using gateway = await start();
  const { port } = gateway.listener;
  using socket = new RawSocket(port);
  const stream = socket.send({
    method: "GET",
    path: "/sse/reading",
    headers: toPairs({ accept: "text/event-stream" }),
  });
  const path = (await stream.event(1)).data!;
  for (const message of [initializeOf("2024-11-05"), { jsonrpc: "2.0", id: 1, method: "tools/list" }])
    await exchange(port, { ...postOf(message), path });
  await expect
    .poll(
      () =>
        stream.events
          .flatMap(({ data }) => (data?.startsWith("{") === true ? [JSON.parse(data) as Frame] : []))
          .find(({ id }) => id === 1)?.result,
    )
    .toMatchObject({ tools: [{ name: "read_note" }] });
  expect((await exchange(port, { method: "GET", path: "/sse/nothing" })).status).toBe(404);
});

describe("a key that is bound to profiles", () => {
  const keys = { ada: { sha256: sha256("ada"), profiles: ["reading"] }, bob: { sha256: sha256("bob") } };

  test("is good at those only", async () => {
    await using gateway = await start({ keys });
    const { port } = gateway.listener;
    const statusAt = async (path: string, headers: object): Promise<number> =>
      (await exchange(port, { ...modernPost(modern("tools/list"), { ...headers }), path })).status;
    expect(await statusAt("/mcp/reading", bearer("ada"))).toBe(200);
    expect(await statusAt("/mcp/writing", bearer("ada"))).toBe(404);
    const refused = await exchange(port, modernPost(modern("tools/list"), bearer("ada")));
    expect(refused.status).toBe(403);
    expect(refused.body).toContain("/mcp/reading");
    for (const path of ["/mcp", "/mcp/reading", "/mcp/writing"]) {
      expect(await statusAt(path, bearer("bob"))).toBe(200);
      expect(await statusAt(path, {})).toBe(401);
    }
    expect(await statusAt("/mcp/nothing", {})).toBe(401);
  });

  test("may use nothing of the gateway itself, also behind another transport", async () => {
    await using gateway = await start({ keys });
    const { provider } = gateway.gateway;
    expect(await listTools(provider, createCallContext({ caller: "ada" }))).toEqual([]);
    expect(await listTools(provider, createCallContext({ caller: "bob" }))).not.toEqual([]);
  });

  test("loses what an edit of the config takes from it, at once", async () => {
    await using gateway = await start({ keys: { ...keys, ada: { sha256: sha256("ada") } } });
    using hers = at("/mcp", gateway.listener.port, "2025-11-25");
    Object.assign(hers.headers, bearer("ada"));
    await hers.initialize();
    const stream = hers.get().reply;
    await gateway.gateway.update(withProfiles({ keys }));
    await stream.complete;
    const ping = { jsonrpc: "2.0", id: 3, method: "ping" };
    expect((await (await hers.post(ping)).complete).status).toBe(403);
  });
});

test.each(["2026-07-28", "2025-11-25"] as const)(
  "a rule that is bound to a profile holds there and nowhere else, over %s",
  async (revision) => {
    await using gateway = await start({
      keys: { ada: { sha256: sha256("ada"), groups: ["ops"] }, bob: { sha256: sha256("bob") } },
      rules: [{ deny: ["write_*"], unless: "'ops' in caller.groups", profiles: ["writing"] }],
    });
    const listed = async (path: string, caller: string): Promise<readonly string[]> => {
      using wire = at(path, gateway.listener.port, revision);
      Object.assign(wire.headers, bearer(caller));
      if (revision === "2025-11-25") await wire.initialize();
      return await namesAt(wire);
    };
    expect(await listed("/mcp/writing", "ada")).toContain("write_note");
    expect(await listed("/mcp/writing", "bob")).toEqual([]);
    expect(await listed("/mcp", "bob")).toContain("write_note");
  },
);

describe("an edit of the config", () => {
  test("adds a profile, and takes one away with its sessions and streams", async () => {
    await using gateway = await start();
    const { port } = gateway.listener;
    using reading = at("/mcp/reading", port, "2025-11-25");
    await reading.initialize();
    using writing = at("/mcp/writing", port, "2025-11-25");
    await writing.initialize();
    using listening = at("/mcp/reading", port);
    const stream = listening.open(
      modern("subscriptions/listen", { notifications: { toolsListChanged: true } }, 7),
    ).reply;
    await stream.message(1);
    const { reading: _, ...rest } = profiles;
    await gateway.gateway.update(withProfiles({ profiles: { ...rest, added: { allow: ["write_*"] } } }));
    await stream.complete;
    const ping = { jsonrpc: "2.0", id: 3, method: "ping" };
    expect((await (await reading.post(ping)).complete).status).toBe(404);
    expect((await writing.ask(ping)).result).toEqual({});
    expect(await namesAt(at("/mcp/added", port))).toEqual(["write_note", "write_asking"]);
    await gateway.gateway.update(withProfiles());
    expect((await (await reading.post(ping)).complete).status).toBe(404);
  });

  test("changes what a profile has, and its sessions are notified", async () => {
    await using gateway = await start();
    using wire = at("/mcp/reading", gateway.listener.port, "2025-11-25");
    await wire.initialize();
    const stream = wire.get().reply;
    await stream.head;
    await gateway.gateway.update(
      withProfiles({ profiles: { ...profiles, reading: { allow: ["write_note"] } } }),
    );
    await expect
      .poll(() => stream.messages.map(({ method }) => method))
      .toContain("notifications/tools/list_changed");
    expect(await namesAt(wire)).toEqual(["write_note"]);
  });
});

test("callers have one limit at all mounts together", async () => {
  await using gateway = await start({ perCaller: { streams: 2 } });
  const { port } = gateway.listener;
  const listen = modern("subscriptions/listen", { notifications: { toolsListChanged: true } }, 7);
  using reading = at("/mcp/reading", port);
  using writing = at("/mcp/writing", port);
  using plain = at("/mcp", port);
  for (const wire of [reading, writing]) await wire.open(listen).reply.message(1);
  const refused = await (await plain.post(listen)).complete;
  expect(refused.json).toMatchObject({ error: { data: { code: "rpc.too_many" } } });
});
