import { connect } from "node:net";
import { PassThrough, Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createDeferred } from "../packages/core/src/async/queue.ts";
import { compose } from "../packages/core/src/compose/compose.ts";
import { RawJson } from "../packages/core/src/json/raw.ts";
import { createCallContext } from "../packages/core/src/provider/context.ts";
import { withMiddleware } from "../packages/core/src/provider/middleware.ts";
import type { Provider, Outcome } from "../packages/core/src/provider/provider.ts";
import { serveStream, listenTcp } from "../packages/server/src/listen/tcp.ts";
import { createRegistry } from "../packages/server/src/registry/registry.ts";
import { createResourceRegistry } from "../packages/server/src/registry/resources.ts";
import { createServer } from "../packages/server/src/wire/server.ts";
import { settlesAtOnce } from "./support/at-once.ts";
import { callTool, listTools, readResource, toProvider, valueOf } from "./support/use-provider.ts";

const info = { name: "test", version: "1.0.0" };
const context = createCallContext();
const meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};

async function resultOf(provider: Provider, name: string): Promise<unknown> {
  const outcome: Outcome = await callTool(provider, name);
  return outcome.kind === "complete" ? outcome.result.value : outcome;
}

/** What a server answers to raw lines. */
async function answersOf(provider: Provider, lines: readonly object[]): Promise<readonly unknown[]> {
  const input = new PassThrough();
  const output = new PassThrough();
  const served = serveStream(createServer(provider, info, { onError: () => {} }), input, output);
  input.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  await served;
  const text = (output.read() as Buffer | null)?.toString() ?? "";
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown);
}

function modern(id: number, method: string, params: object): object {
  return { jsonrpc: "2.0", id, method, params: { ...params, _meta: meta } };
}

describe("what a handler does to what it is given", () => {
  test("to its arguments is not seen by the next call that has none either", async () => {
    const registry = createRegistry();
    registry.register("who", { input: { type: "object" } }, (args) =>
      JSON.stringify((args["user"] ??= `${Math.random()}`)),
    );
    expect(await resultOf(registry, "who")).not.toEqual(await resultOf(registry, "who"));
  });

  test("to the capabilities of its caller fails, because others may have said the same", async () => {
    const registry = createRegistry();
    registry.register("poison", {}, (_, { capabilities }) => {
      Object.assign(capabilities, { elicitation: {} });
      return "poisoned";
    });
    const answers = await answersOf(registry, [modern(1, "tools/call", { name: "poison" })]);
    expect(answers).toMatchObject([{ result: { isError: true } }]);
  });
});

describe("a result", () => {
  test.each(["[]", "null", '"x"', "5"])(
    "of a provider that is %s becomes an error, not a broken frame",
    async (text) => {
      const provider = toProvider([], () => ({ kind: "complete", result: RawJson.fromText(text) }));
      const answers = await answersOf(provider, [modern(1, "tools/call", { name: "a" })]);
      expect(answers).toMatchObject([{ id: 1, error: { code: -32603 } }]);
    },
  );

  test("is what the output schema makes of it, in both forms", async () => {
    const registry = createRegistry();
    const output = z.object({ id: z.number(), n: z.coerce.number().default(7) });
    registry.register("user", { output }, () => ({ id: 1, password: "hunter2" }));
    expect(await resultOf(registry, "user")).toEqual({
      content: [{ type: "text", text: '{"id":1,"n":7}' }],
      structuredContent: { id: 1, n: 7 },
    });
  });

  test("that is a thenable is waited for", async () => {
    const registry = createRegistry();
    const query = Object.fromEntries([["then", (give: (value: string) => void) => give("rows")]]);
    registry.register("query", {}, () => query);
    expect(await resultOf(registry, "query")).toMatchObject({ content: [{ text: "rows" }] });
  });

  test("that JSON would silently empty is a fault of the tool", async () => {
    const errors: unknown[] = [];
    const registry = createRegistry({ onError: (error) => errors.push(error) });
    // @ts-expect-error -- the compiler says so too
    registry.register("map", {}, () => new Map([["a", 1]]));
    expect(await resultOf(registry, "map")).toMatchObject({ isError: true });
    expect(String(errors[0])).toContain("Map");
  });
});

describe("a composite with a member that never lists", () => {
  const good = createRegistry();
  good.register("hello", {}, () => "hi");
  const stuck: Provider = {
    list: () => new Promise(() => {}),
    call: () => Promise.reject(new Error("no")),
    offers: () => ({ serves: () => true }),
  };

  test("lists the others, and waits for it once only", async () => {
    const errors: string[] = [];
    const all = compose({ good, stuck }, { onListError: (namespace) => errors.push(namespace) });
    const first = await listTools(all, context);
    const asked = Promise.resolve(listTools(all, context));
    expect(await settlesAtOnce(asked)).toBe(true);
    const second = await asked;
    expect([first, second].map((tools) => tools.map(({ name }) => name))).toEqual([
      ["good__hello"],
      ["good__hello"],
    ]);
    // The report and the end of the wait have timers of their own.
    await expect.poll(() => errors).toEqual(["stuck"]);
  });

  test("calls the others through a filter", async () => {
    const all = withMiddleware(compose({ good, stuck }, { onListError: () => {} }), [
      { filterTools: (tools) => tools },
    ]);
    expect(await resultOf(all, "good__hello")).toMatchObject({ content: [{ text: "hi" }] });
  });
});

test("a resource is read from the member that lists it, and no other is asked", async () => {
  const asked: string[] = [];
  const resourcesOf = (name: string, uris: readonly string[]): Provider => {
    const resources = createResourceRegistry();
    for (const uri of uris) resources.register(uri, { name: uri }, () => name);
    return {
      ...resources,
      call: (operation, by) => {
        asked.push(name);
        return name === "broken" ? Promise.reject(new Error("broken")) : resources.call(operation, by);
      },
    };
  };
  const all = compose({ broken: resourcesOf("broken", []), fine: resourcesOf("fine", ["x://1"]) });
  expect(valueOf(await readResource(all, "x://1"))).toMatchObject({
    contents: [{ text: "fine" }],
  });
  expect(asked).toEqual(["fine"]);
});

test("a page of a browser cannot call a tool over TCP: what does not begin like JSON gets nothing", async () => {
  const called: string[] = [];
  const registry = createRegistry();
  registry.register("touch", {}, () => void called.push("touched"));
  await using listener = await listenTcp(createServer(registry, info), { port: 0 });
  const socket = connect(listener.port, listener.host);
  const received: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => received.push(chunk));
  const body = JSON.stringify(modern(1, "tools/call", { name: "touch" }));
  socket.write(`POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${body.length + 1}\r\n\r\n${body}\n`);
  await new Promise((resolve) => socket.once("close", resolve));
  expect([Buffer.concat(received).length, called]).toEqual([0, []]);
});

test("many large answers in one turn leave whole, and are not joined to a text longer than any may be", async () => {
  const registry = createRegistry();
  const big = "x".repeat(600_000);
  const opened = createDeferred<void>();
  registry.register("big", {}, async () => {
    await opened.promise;
    return big;
  });
  const input = new PassThrough();
  const chunks: number[] = [];
  const output = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(chunk.length);
      done();
    },
  });
  const served = serveStream(createServer(registry, info), input, output);
  for (let id = 0; id < 1000; id++)
    input.write(`${JSON.stringify(modern(id, "tools/call", { name: "big" }))}\n`);
  input.end();
  setImmediate(opened.resolve);
  await served;
  expect(chunks.reduce((sum, length) => sum + length, 0)).toBeGreaterThan(600_000_000);
  expect(Math.max(...chunks)).toBeLessThan(2 * big.length);
});

test("a bare name passes a filter under the name the list has for it", async () => {
  const registry = createRegistry();
  registry.register("tx", {}, () => "ran");
  const all = compose({ a: registry }, { bareNames: "first_match" });
  const shown = withMiddleware(all, [{ filterTools: (tools) => tools }]);
  const hidden = withMiddleware(all, [{ filterTools: () => [] }]);
  expect(await resultOf(shown, "tx")).toMatchObject({ content: [{ text: "ran" }] });
  await expect(resultOf(hidden, "tx")).rejects.toThrow("Tool not found: tx");
});
