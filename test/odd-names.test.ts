// Names that every JavaScript object has. As a method, tool, prompt, URI, argument or level they are names like any other.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGateway } from "../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../packages/server/src/http/listen-http.ts";
import { createCompletionRegistry } from "../packages/server/src/registry/completion.ts";
import { createPromptRegistry } from "../packages/server/src/registry/prompts.ts";
import { createRegistry } from "../packages/server/src/registry/registry.ts";
import { createResourceRegistry } from "../packages/server/src/registry/resources.ts";
import { type Conversation, talkLegacy, talkModern } from "./support/conversation.ts";
import { connectLegacy, HttpWire, modern, modernPost } from "./support/http-wire.ts";
import { exchange } from "./support/raw-http.ts";
import type { Frame } from "./support/wire-schema.ts";

const odd = ["__proto__", "constructor", "toString", "hasOwnProperty", "__defineGetter__"];
const usual = "nothing-of-the-kind";

type Params = { readonly [key: string]: unknown };
type Send = (method: string, params?: Params) => Promise<Frame>;

const closing: (() => unknown)[] = [];
const ways = new Map<string, Send>();
let port = 0;

beforeAll(async () => {
  const [resources, prompts, completion] = [
    createResourceRegistry(),
    createPromptRegistry(),
    createCompletionRegistry(),
  ];
  const registry = createRegistry({ resources, prompts, completion });
  registry.register("echo", { input: { type: "object" } }, (args) => JSON.stringify(args));
  prompts.register("greet", { arguments: [{ name: "__proto__" }] }, (args) => JSON.stringify(args));
  resources.registerTemplate("note://{__proto__}", { name: "note" }, ({ variables }) =>
    JSON.stringify(variables),
  );
  const gateway = await createGateway({ mcpServers: {} }, { local: { own: registry } });
  const listener = await listenHttp(gateway.server, { port: 0, graceMs: 100 });
  await gateway.ready;
  port = listener.port;
  const http = new HttpWire(port, "2026-07-28");
  const session = await connectLegacy(port, "2025-11-25", {});
  const through =
    (talk: Conversation): Send =>
    (method, params) =>
      talk.request(method, params);
  const channels = [talkModern(gateway.server), await talkLegacy(gateway.server, "2025-06-18")] as const;
  ways.set("HTTP, modern", (method, params) => http.ask(modern(method, params)));
  ways.set("HTTP, legacy", (method, params = {}) => session.ask({ jsonrpc: "2.0", id: 1, method, params }));
  ways.set("a channel, modern", through(channels[0]));
  ways.set("a channel, legacy", through(channels[1]));
  closing.push(
    () => http[Symbol.dispose](),
    () => session[Symbol.dispose](),
    ...channels.map((each) => () => each[Symbol.asyncDispose]()),
    () => listener.close(),
    () => gateway.close(),
  );
});
afterAll(async () => {
  for (const close of closing) await close();
});

/** The answer, with the name that was sent replaced. */
async function answerTo(way: string, name: string, method: string, params?: Params): Promise<unknown> {
  const { error, result } = await ways.get(way)!(method, params);
  return JSON.parse(JSON.stringify({ error, result }).replaceAll(name, "NAME")) as unknown;
}

describe.each(["HTTP, modern", "HTTP, legacy", "a channel, modern", "a channel, legacy"])(
  "over %s",
  (way) => {
    test.each(odd)("a method %s does not exist", async (name) => {
      expect(await answerTo(way, name, name)).toMatchObject({ error: { code: -32601 } });
      expect(await answerTo(way, name, name)).toEqual(await answerTo(way, usual, usual));
    });

    test.each<[string, string, (name: string) => Params]>([
      ["a tool", "tools/call", (name) => ({ name, arguments: {} })],
      ["a tool of a server", "tools/call", (name) => ({ name: `own__${name}`, arguments: {} })],
      ["a prompt", "prompts/get", (name) => ({ name })],
      ["a URI", "resources/read", (name) => ({ uri: name })],
      ["a prompt to complete", "completion/complete", (name) => completing({ type: "ref/prompt", name })],
      ["a template to complete", "completion/complete", (uri) => completing({ type: "ref/resource", uri })],
      ["a kind of reference", "completion/complete", (type) => completing({ type })],
      ["a cursor", "tools/list", (cursor) => ({ cursor })],
    ])("%s of such a name is as unknown as any other", async (_, method, paramsOf) => {
      const expected = await answerTo(way, usual, method, paramsOf(usual));
      expect(expected).toHaveProperty("error");
      for (const name of odd) expect(await answerTo(way, name, method, paramsOf(name))).toEqual(expected);
    });

    test("arguments and values of such names reach the tool, prompt and resource", async () => {
      const send = ways.get(way)!;
      const args = JSON.parse('{"__proto__":"a","constructor":"b"}') as Params;
      const told = await Promise.all([
        send("tools/call", { name: "echo", arguments: args }),
        send("prompts/get", { name: "greet", arguments: args }),
        send("resources/read", { uri: "note://a" }),
      ]);
      for (const { result } of told) expect(JSON.stringify(result)).toContain('{\\"__proto__\\":\\"a\\"');
    });
  },
);

function completing(ref: Params): Params {
  return { ref, argument: { name: "a", value: "" } };
}

test.each(odd)("an HTTP header %s changes nothing", async (name) => {
  const request = modernPost(modern("tools/list"), { [name]: "x", [`mcp-param-${name}`]: "x" });
  expect((await exchange(port, request)).status).toBe(200);
});

test.each(odd)("a log level %s is refused", async (level) => {
  for (const way of ["HTTP, legacy", "a channel, legacy"])
    expect(await ways.get(way)!("logging/setLevel", { level })).toMatchObject({ error: { code: -32602 } });
});
