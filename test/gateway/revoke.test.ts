// A key that is taken away, exchanged or narrowed while its holder has something open.
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { GatewayConfig } from "../../packages/junctor/src/config/config.ts";
import { parseConfigValue } from "../../packages/junctor/src/config/parse-config.ts";
import { startGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createResourceRegistry } from "../../packages/server/src/registry/resources.ts";
import {
  connectLegacy,
  HttpWire,
  initializeOf,
  modern,
  modernCall,
  modernPost,
  postOf,
  toPairs,
} from "../support/http-wire.ts";
import { type RawReply, RawSocket, toBytes } from "../support/raw-http.ts";
import { dialects } from "./support/clients.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";

const keyOf = (name: string): string => `${name}-0123456789-abcdefgh`;
const bearer = (key: string): { readonly authorization: string } => ({ authorization: `Bearer ${key}` });
const ada = bearer(keyOf("ada"));
const bob = bearer(keyOf("bob"));

interface Key {
  readonly text?: string;
  readonly deny?: readonly string[];
}

const toConfig = (keys: { readonly [name: string]: Key }): object => ({
  mcpServers: {},
  junctor: {
    keys: Object.fromEntries(
      Object.entries(keys).map(([name, { text = keyOf(name), ...more }]) => [
        name,
        { sha256: createHash("sha256").update(text).digest("hex"), ...more },
      ]),
    ),
  },
});

interface Started extends TestGateway {
  /** Says that a note changed. */
  touch(uri: string): void;
  /** What became of calls of `hold`. */
  readonly held: readonly string[];
}

/** A gateway for Ada and Bob, with notes to watch and a tool that does not end by itself. */
async function start(): Promise<Started> {
  const resources = createResourceRegistry();
  for (const name of ["open", "secret"]) resources.register(`note://${name}`, { name }, () => name);
  const held: string[] = [];
  const notes = createRegistry({ resources });
  notes.register("hold", { description: "Waits until it is given up." }, (_args, { signal }) => {
    held.push("running");
    return new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        held.push("given up");
        reject(signal.reason);
      });
    });
  });
  const at = await startTestGateway(toConfig({ ada: {}, bob: {} }), { local: { notes } });
  return Object.assign(at, { touch: (uri: string) => resources.updated(uri), held });
}

const listen = (id = 7): ReturnType<typeof modern> =>
  modern(
    "subscriptions/listen",
    { notifications: { toolsListChanged: true, resourceSubscriptions: ["note://open"] } },
    id,
  );

/** The changed resources that came on a stream. */
const heardOn = ({ messages }: RawReply): readonly unknown[] =>
  messages.flatMap(({ method, params }) =>
    method === "notifications/resources/updated" ? [params?.["uri"]] : [],
  );

describe.each([
  ["is removed", {}],
  ["is another now", { ada: { text: "another-key-of-ada-0123456789" } }],
])("when a key %s", (_what, left) => {
  const after = toConfig({ ...left, bob: {} });

  test("the stream of its session ends and the session is forgotten; those of other callers stay", async () => {
    await using at = await start();
    using hers = await connectLegacy(at.listener.port, "2025-11-25", {}, ada);
    using his = await connectLegacy(at.listener.port, "2025-11-25", {}, bob);
    const streams = [hers, his].map((wire) => wire.get().reply);
    for (const wire of [hers, his])
      await wire.ask({
        jsonrpc: "2.0",
        id: 1,
        method: "resources/subscribe",
        params: { uri: "note://open" },
      });
    at.touch("note://open");
    for (const stream of streams) await expect.poll(() => heardOn(stream)).toEqual(["note://open"]);
    await at.gateway.update(after);
    await streams[0]!.complete;
    at.touch("note://open");
    await expect.poll(() => heardOn(streams[1]!)).toEqual(["note://open", "note://open"]);
    expect(heardOn(streams[0]!)).toEqual(["note://open"]);
    // Also for whoever has the key back.
    await at.gateway.update(toConfig({ ada: {}, bob: {} }));
    expect((await hers.get().reply.complete).status).toBe(404);
    expect((await his.ask({ jsonrpc: "2.0", id: 2, method: "ping" })).result).toEqual({});
  });

  test("what it listens to ends", async () => {
    await using at = await start();
    using hers = new HttpWire(at.listener.port, "2026-07-28");
    using his = new HttpWire(at.listener.port, "2026-07-28");
    const mine = await hers.post(listen(), ada);
    const other = await his.post(listen(), bob);
    for (const stream of [mine, other]) await stream.message(1);
    await at.gateway.update(after);
    await mine.complete;
    expect(mine.messages.at(-1)).toMatchObject({ id: 7, result: { resultType: "complete" } });
    at.touch("note://open");
    await expect.poll(() => heardOn(other)).toEqual(["note://open"]);
    expect(other.isComplete).toBe(false);
  });

  test("its HTTP+SSE stream ends", async () => {
    await using at = await start();
    using hers = new RawSocket(at.listener.port);
    const stream = hers.send({
      method: "GET",
      path: "/sse",
      headers: toPairs({ accept: "text/event-stream", ...ada }),
    });
    const path = (await stream.event(1)).data!;
    using posting = new RawSocket(at.listener.port);
    await posting.send({ ...postOf(initializeOf("2024-11-05"), ada), path }).complete;
    await stream.event(2);
    await at.gateway.update(after);
    await stream.complete;
  });

  test.each([
    ["modern", "2026-07-28"],
    ["legacy", "2025-11-25"],
  ] as const)("a %s call of it is given up, and answered", async (_era, revision) => {
    await using at = await start();
    using wire =
      revision === "2026-07-28"
        ? new HttpWire(at.listener.port, revision)
        : await connectLegacy(at.listener.port, revision, {}, ada);
    Object.assign(wire.headers, ada);
    const call = modernCall("hold");
    const answer = wire.ask(
      revision === "2026-07-28"
        ? call
        : { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "hold", arguments: {} } },
    );
    await expect.poll(() => at.held).toEqual(["running"]);
    await at.gateway.update(after);
    expect(await answer).toHaveProperty("error");
    await expect.poll(() => at.held).toEqual(["running", "given up"]);
  });

  test("a request that began to come in before is refused", async () => {
    await using at = await start();
    using socket = new RawSocket(at.listener.port);
    const bytes = toBytes(modernPost(listen(), ada), socket.host);
    const reply = socket.send(bytes.subarray(0, -10));
    // Whatever comes on another socket after that is served later.
    using other = new HttpWire(at.listener.port, "2026-07-28");
    await other.ask(modern("server/discover"), bob);
    await at.gateway.update(after);
    socket.socket.write(bytes.subarray(-10));
    expect((await reply.complete).status).toBe(401);
  });
});

test("the first keys end what was opened without a key", async () => {
  const parse = (config: object): GatewayConfig => parseConfigValue(config, { file: "mcp.json", env: {} });
  const notes = createRegistry();
  await using gateway = await startGateway(parse({ mcpServers: {} }), { local: { notes } });
  await using listener = await listenHttp(gateway.server, {
    port: 0,
    graceMs: 200,
    authenticate: gateway.admit,
  });
  using old = await connectLegacy(listener.port);
  const stream = old.get().reply;
  using wire = new HttpWire(listener.port, "2026-07-28");
  const listening = await wire.post(listen());
  await listening.message(1);
  await gateway.apply(parse(toConfig({ ada: {} })));
  await Promise.all([stream.complete, listening.complete]);
});

describe("when a key may see less", () => {
  test.each(dialects)("$name is not notified of what it may not see", async ({ connect }) => {
    await using at = await start();
    await using hers = await connect(at.url, { key: keyOf("ada") });
    await hers.watch("note://secret");
    await using more = await connect(at.url, { key: keyOf("ada") });
    await more.watch("note://open");
    const heard = (): readonly string[] =>
      [...hers.changes, ...more.changes].filter((change) => change.startsWith("note:"));
    at.touch("note://secret");
    await expect.poll(heard).toContain("note://secret");
    await at.gateway.update(toConfig({ ada: { deny: ["notes__note://secret"] }, bob: {} }));
    const before = hers.changes.filter((change) => change === "note://secret").length;
    at.touch("note://secret");
    at.touch("note://open");
    await expect.poll(heard).toContain("note://open");
    expect(hers.changes.filter((change) => change === "note://secret")).toHaveLength(before);
    // It hears again of what it may see again.
    await at.gateway.update(toConfig({ ada: {}, bob: {} }));
    at.touch("note://secret");
    await expect
      .poll(() => hers.changes.filter((change) => change === "note://secret").length)
      .toBe(before + 1);
  });
});
