// Which extensions are declared on each side of a gateway, for each caller and server.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { type HttpFront, startHttpFront } from "../bridge/support/front.ts";
import { fixture } from "../bridge/support/upstream.ts";
import { connectLegacy, HttpWire, legacyCall, modern, modernCall, modernMeta } from "../support/http-wire.ts";
import { toProvider } from "../support/use-provider.ts";
import type { Frame } from "../support/wire-schema.ts";

const ui = "io.modelcontextprotocol/ui";
const skills = "io.modelcontextprotocol/skills";
const settings = { mimeTypes: ["text/html;profile=mcp-app"] };
const offered = {
  [ui]: settings,
  [skills]: {},
  "io.modelcontextprotocol/oauth-client-credentials": { secret: 1 },
  "com.example/maps": { zoom: 3 },
};
const passed = { [ui]: settings, [skills]: {} };

/** Lists a tool more for those that declare pages, and tells what it was told. */
const telling = toProvider(
  ({ capabilities: { extensions = {} } }) => [
    { name: "told", inputSchema: { type: "object" } },
    ...(ui in extensions ? [{ name: "shown", inputSchema: { type: "object" as const } }] : []),
  ],
  (_, { capabilities: { extensions = null } }) => ({
    kind: "complete",
    result: RawJson.fromValue({ content: [{ type: "text", text: JSON.stringify(extensions) }] }),
  }),
);

const listen = (serves: "modern" | "legacy"): Promise<HttpListener> =>
  listenHttp(createServer(telling, { name: serves, version: "1" }, { serves }), { port: 0, graceMs: 100 });

type Reply = { readonly result?: { readonly [member: string]: unknown } };
const textOf = (reply: object): unknown => {
  const { content = [] } = (reply as Reply).result as {
    readonly content?: readonly { readonly text: string }[];
  };
  return JSON.parse(content[0]?.text ?? "null");
};
const toolsOf = ({ result = {} }: Reply): readonly { readonly name: string }[] =>
  result["tools"] as readonly { readonly name: string }[];
const namesOf = (reply: object): readonly string[] => toolsOf(reply as Reply).map(({ name }) => name);

describe("extensions through a gateway", () => {
  let front: HttpFront;
  const listeners: HttpListener[] = [];

  beforeAll(async () => {
    const urls = await Promise.all(
      (["modern", "legacy"] as const).map(async (serves) => {
        const listener = await listen(serves);
        listeners.push(listener);
        return [serves, { type: "http", url: `http://127.0.0.1:${listener.port}/mcp` }] as const;
      }),
    );
    const child = { command: process.execPath, args: [fixture("tells-extensions.mjs")] };
    front = await startHttpFront({
      mcpServers: { ...Object.fromEntries(urls), shared: child, own: child },
      junctor: {
        servers: {
          modern: { extensions: { "com.example/maps": {} } },
          own: { sharing: "perSession" },
        },
      },
    });
  });
  afterAll(async () => {
    await front?.[Symbol.asyncDispose]();
    for (const listener of listeners) await listener[Symbol.asyncDispose]();
  });

  const ask = async (frame: Frame): Promise<object> => {
    using wire = new HttpWire(front.listener.port, "2026-07-28");
    return await wire.ask(frame);
  };
  const call = (name: string, extensions?: object): Promise<object> =>
    ask(modernCall(name, {}, { _meta: modernMeta(extensions === undefined ? {} : { extensions }) }));

  test("a modern server receives those of the caller that pass, and the one that the config opened", async () => {
    expect(textOf(await call("modern__told", offered))).toEqual({
      ...passed,
      "com.example/maps": { zoom: 3 },
    });
    expect(textOf(await call("modern__told"))).toBeNull();
  });

  test("a legacy server over HTTP receives them in the handshake of a conversation for such callers", async () => {
    expect(textOf(await call("legacy__told", offered))).toEqual(passed);
    expect(textOf(await call("legacy__told"))).toBeNull();
  });

  test("a legacy caller has declared them once, and they pass in the same way", async () => {
    using wire = await connectLegacy(front.listener.port, "2025-06-18", { extensions: offered });
    const ask2 = async (name: string): Promise<unknown> =>
      textOf((await (await wire.post(legacyCall(1, name))).complete).messages[0]!);
    expect(await ask2("legacy__told")).toEqual(passed);
    expect(await ask2("modern__told")).toMatchObject(passed);
  });

  test("a process that all callers share receives none, and no further process is started", async () => {
    expect(textOf(await call("shared__told", offered))).toBeNull();
    expect(textOf(await call("shared__told"))).toBeNull();
    const status = front.gateway.status().find(({ name }) => name === "shared");
    expect(status?.connections ?? []).toHaveLength(0);
  });

  test("a process of the caller's own receives those of the caller", async () => {
    expect(textOf(await call("own__told", offered))).toEqual(passed);
  });

  test("each caller is listed what servers list for what it declares", async () => {
    const list = async (extensions: object): Promise<readonly string[]> =>
      namesOf(await ask(modern("tools/list", { _meta: modernMeta({ extensions }) })));
    await expect
      .poll(() => list(offered))
      .toEqual(expect.arrayContaining(["modern__shown", "legacy__shown"]));
    const plain = await list({});
    expect(plain).toContain("modern__told");
    expect(plain.filter((name) => name.endsWith("__shown"))).toEqual([]);
  });

  test("a caller that declares extensions and can be asked nothing is not parked", async () => {
    const reply = await call("legacy__told", { [ui]: settings });
    expect(reply).not.toHaveProperty("result.requestState");
  });

  test("the gateway offers what it passes on, whatever is up, and what the config opened", async () => {
    const discovered = (await ask(modern("server/discover"))) as Reply;
    expect(discovered.result?.["capabilities"]).toMatchObject({
      extensions: { [ui]: {}, "com.example/maps": {} },
    });
    using wire = new HttpWire(front.listener.port, "2025-11-25");
    const params = {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "c", version: "1" },
    };
    const begun = (await wire.ask({ jsonrpc: "2.0", id: 1, method: "initialize", params })) as Reply;
    expect(begun.result?.["capabilities"]).toMatchObject({ extensions: { [ui]: {} } });
  });
});
