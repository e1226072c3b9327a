import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import {
  type FetchHandler,
  type FetchOptions,
  toFetchHandler,
} from "../../packages/server/src/http/fetch.ts";
import { createHttpTools, type HttpTools } from "../support/http-tools.ts";
import {
  both,
  initializeOf,
  json,
  legacyCall,
  mirrored,
  modern,
  modernCall,
  sse,
  toPairs,
} from "../support/http-wire.ts";
import type { Message } from "../support/raw-http.ts";
import { assertValidFrame, type Frame } from "../support/wire-schema.ts";

const url = "http://localhost:8787/mcp";
const withToken = { _meta: { progressToken: "t" } };

interface Mounted extends HttpTools {
  readonly handler: FetchHandler;
  readonly warnings: string[];
}

function mount(options: FetchOptions = {}): Mounted {
  const tools = createHttpTools();
  const warnings: string[] = [];
  const onWarning = (warning: string): void => void warnings.push(warning);
  return { ...tools, warnings, handler: toFetchHandler(tools.server, { onWarning, ...options }) };
}

type Headers = { readonly [name: string]: string | undefined };

function post(message: unknown, headers: Headers = {}, more: RequestInit = {}): Request {
  const all = { "content-type": json, accept: both, ...headers };
  return new Request(url, {
    method: "POST",
    headers: [...toPairs(all)] as [string, string][],
    body: JSON.stringify(message),
    ...more,
  });
}

function modernRequest(message: Frame, headers: Headers = {}, more: RequestInit = {}): Request {
  return post(message, { ...mirrored(message), ...headers }, more);
}

/** Reads messages from a stream one at a time. */
function readerOf(response: Response): {
  next(): Promise<Message | undefined>;
  cancel(): Promise<void>;
  readonly ids: string[];
} {
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  const ids: string[] = [];
  let text = "";
  const next = async (): Promise<Message | undefined> => {
    for (;;) {
      const end = text.indexOf("\n\n");
      if (end !== -1) {
        const block = text.slice(0, end);
        text = text.slice(end + 2);
        const id = /^id: (.*)$/m.exec(block)?.[1];
        if (id !== undefined) ids.push(id);
        const data = /^data: (.+)$/m.exec(block)?.[1];
        if (data !== undefined) return JSON.parse(data) as Message;
        continue;
      }
      const read = await reader.read();
      if (read.done) return undefined;
      text += decoder.decode(read.value as Uint8Array, { stream: true });
    }
  };
  return { next, cancel: () => reader.cancel(), ids };
}

describe("through Request and Response", () => {
  test("a modern call is answered", async () => {
    const message = modernCall("echo", { message: "hi" });
    const response = await mount().handler(modernRequest(message));
    expect([response.status, response.headers.get("content-type")]).toEqual([200, json]);
    const answer = (await response.json()) as Frame;
    expect(answer.result).toMatchObject({ content: [{ text: "hi" }] });
    assertValidFrame("server", "2026-07-28", message, answer);
  });

  test("a frame is there before the tool goes on", async () => {
    const { handler, steps } = mount();
    steps.allow();
    const response = await handler(modernRequest(modernCall("recite", {}, withToken)));
    expect(response.headers.get("content-type")).toBe(sse);
    const reader = readerOf(response);
    expect((await reader.next())!.params).toMatchObject({ message: "one " });
    steps.allow(3);
    const rest = [await reader.next(), await reader.next(), await reader.next(), await reader.next()];
    expect(rest.map((message) => message?.params?.["message"])).toEqual([
      "two ",
      "three",
      undefined,
      undefined,
    ]);
    expect(rest[2]).toMatchObject({ id: 1, result: { content: [{ text: "one two three" }] } });
  });

  test("a notification is accepted with an empty body", async () => {
    const notification = { jsonrpc: "2.0", method: "notifications/x" };
    const response = await mount().handler(post(notification, { "mcp-protocol-version": "2026-07-28" }));
    expect([response.status, response.body]).toEqual([202, null]);
  });

  test("a legacy session works: handshake, stream, resumption, deletion", async () => {
    const { handler } = mount();
    const begun = await handler(post(initializeOf("2025-11-25")));
    const session = { "mcp-session-id": begun.headers.get("mcp-session-id")! };
    const call = legacyCall(1, "burst", { count: 3 }, { progressToken: 1 });
    const first = readerOf(await handler(post(call, session)));
    await first.next();
    await first.cancel();
    const headers = { ...session, accept: sse, "last-event-id": first.ids.at(-1)! };
    const rest = readerOf(await handler(new Request(url, { headers })));
    const messages = [await rest.next(), await rest.next(), await rest.next(), await rest.next()];
    expect(messages.map((message) => message?.params?.["message"])).toEqual([
      "piece 2",
      "piece 3",
      undefined,
      undefined,
    ]);
    expect(messages[2]).toMatchObject({ id: 1, result: {} });
    expect((await handler(new Request(url, { method: "DELETE", headers: session }))).status).toBe(200);
    expect((await handler(post(call, session))).status).toBe(404);
  });

  test("listen streams are acknowledged first", async () => {
    const { handler, registry } = mount();
    const listen = modern("subscriptions/listen", { notifications: { toolsListChanged: true } });
    const reader = readerOf(await handler(modernRequest(listen)));
    expect((await reader.next())!.method).toBe("notifications/subscriptions/acknowledged");
    registry.register("sprout", {}, () => "grown");
    expect((await reader.next())!.method).toBe("notifications/tools/list_changed");
    await reader.cancel();
  });

  test("other paths, methods, types and sizes are refused", async () => {
    const { handler } = mount({ maxBodyBytes: 1000 });
    const statusOf = async (request: Request): Promise<number> => (await handler(request)).status;
    expect(await statusOf(new Request("http://localhost:8787/nowhere"))).toBe(404);
    expect(await statusOf(new Request(url, { method: "PUT" }))).toBe(405);
    expect(await statusOf(post({}, { "content-type": "text/plain" }))).toBe(415);
    expect(await statusOf(post("x".repeat(2000)))).toBe(413);
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(new TextEncoder().encode(" ".repeat(600))),
    });
    const endless = {
      method: "POST",
      headers: { "content-type": json },
      body,
      duplex: "half",
    } as RequestInit;
    expect(await statusOf(new Request(url, endless))).toBe(413);
    expect(await statusOf(new Request("http://localhost:8787/health"))).toBe(200);
  });

  test.each([
    ["http://evil.example/mcp", {}, 403],
    ["http://localhost.evil:8787/mcp", {}, 403],
    [url, { host: "evil.example" }, 403],
    [url, { origin: "https://evil.example" }, 403],
    [url, { origin: "http://localhost:8787" }, 400],
    ["https://localhost/mcp", {}, 400],
    ["https://mcp.example.com/mcp", {}, 400],
  ])("Host and Origin are checked: %s %o is answered with %i", async (to, headers, status) => {
    const { handler } = mount({ allowedHosts: ["mcp.example.com"] });
    expect((await handler(new Request(to, { headers }))).status).toBe(status);
  });

  test("a body that breaks off is answered all the same", async () => {
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error("gone")) });
    const broken = { method: "POST", headers: { "content-type": json }, body, duplex: "half" } as RequestInit;
    expect((await mount().handler(new Request(url, broken))).status).toBe(400);
  });

  test("an internal error is answered with 500, and discloses nothing", async () => {
    const authenticate = (): never => {
      throw new Error("a secret detail");
    };
    const { handler, warnings } = mount({ authenticate });
    const response = await handler(modernRequest(modern("tools/list")));
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("secret");
    expect(warnings).toEqual(["Serving POST /mcp failed"]);
  });
});

describe("a client that leaves", () => {
  test("by cancelling the stream aborts the tool", async () => {
    const { handler, waits } = mount();
    const reader = readerOf(await handler(modernRequest(modernCall("wait", { key: "k" }, withToken))));
    await reader.next();
    await reader.cancel();
    await expect.poll(() => waits.get("k")).toBe("aborted");
  });

  test("by aborting the request aborts the tool, also before anything was said", async () => {
    const { handler, waits } = mount();
    const controller = new AbortController();
    const { signal } = controller;
    void handler(modernRequest(modernCall("silent"), {}, { signal }));
    await expect.poll(() => waits.get("silent")).toBe("running");
    controller.abort();
    await expect.poll(() => waits.get("silent")).toBe("aborted");
  });

  test("by aborting the request is not written to any more", async () => {
    const { handler, warnings } = mount();
    const begun = await handler(post(initializeOf("2025-11-25")));
    const headers = { "mcp-session-id": begun.headers.get("mcp-session-id")!, accept: sse };
    const controller = new AbortController();
    const first = await handler(new Request(url, { headers, signal: controller.signal }));
    controller.abort();
    // While it counts as connected, there is no second.
    const second = await handler(new Request(url, { headers }));
    expect([first.status, second.status, warnings]).toEqual([200, 200, []]);
    await second.body!.cancel();
  });

  test.each([
    ["whole", modernCall("echo", { message: "hi" })],
    ["in pieces", modernCall("burst", { count: 2 }, withToken)],
  ])("after an answer that came %s leaves nothing behind on its signal", async (_, message) => {
    const request = modernRequest(message);
    await (await mount().handler(request)).text();
    expect(getEventListeners(request.signal, "abort")).toEqual([]);
  });

  test("in two ways at once is noticed once", async () => {
    const { handler, registry } = mount();
    let aborts = 0;
    registry.register("count", {}, async (_, { signal, progress }) => {
      signal.addEventListener("abort", () => aborts++);
      await progress(1);
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    });
    const controller = new AbortController();
    const request = modernRequest(
      modernCall("count", {}, withToken),
      {},
      {
        signal: controller.signal,
      },
    );
    const reader = readerOf(await handler(request));
    await reader.next();
    await reader.cancel();
    expect(getEventListeners(request.signal, "abort")).toEqual([]);
    controller.abort();
    await expect.poll(() => aborts).toBe(1);
  });

  test("before a legacy call sends anything gets its result when it comes back", async () => {
    const { handler, waits, registry, warnings } = mount();
    const begun = await handler(post(initializeOf("2025-11-25")));
    const session = { "mcp-session-id": begun.headers.get("mcp-session-id")! };
    const controller = new AbortController();
    let isOver = false;
    registry.register("late", {}, async (_, { progress }) => {
      waits.set("late", "running");
      await new Promise((resolve) => controller.signal.addEventListener("abort", resolve));
      await progress(1);
      isOver = true;
    });
    const { signal } = controller;
    const call = post(legacyCall(1, "late", {}, { progressToken: 1 }), session, { signal });
    const answered = handler(call);
    await expect.poll(() => waits.get("late")).toBe("running");
    controller.abort();
    await expect.poll(() => isOver).toBe(true);
    expect((await answered).headers.get("content-type")).toBe(sse);
    expect(warnings).toEqual([]);
  });

  test("does not abort a legacy call", async () => {
    const { handler, waits } = mount();
    const begun = await handler(post(initializeOf("2025-11-25")));
    const session = { "mcp-session-id": begun.headers.get("mcp-session-id")! };
    const call = legacyCall(1, "wait", { key: "k" }, { progressToken: 1 });
    const reader = readerOf(await handler(post(call, session)));
    await reader.next();
    await reader.cancel();
    await handler(post({ jsonrpc: "2.0", id: 2, method: "ping" }, session));
    expect(waits.get("k")).toBe("running");
  });
});

describe("a reader that is slow", () => {
  const frame = "x".repeat(10_000);

  test("holds up a tool that waits for it", async () => {
    const { handler, registry } = mount();
    let sent = 0;
    registry.register("flood", {}, async function* () {
      for (; sent < 100; sent++) yield { type: "progress", progress: sent, message: frame };
    });
    const reader = readerOf(await handler(modernRequest(modernCall("flood", {}, withToken))));
    await new Promise((resolve) => setImmediate(resolve));
    expect(sent).toBeLessThan(4);
    let read = 0;
    while ((await reader.next()) !== undefined) read++;
    expect(read).toBe(101);
  });

  test("is cut, with a reason, when the tool does not wait", async () => {
    const { handler, registry, warnings } = mount();
    let isAborted = false;
    registry.register("flood", {}, async (_, { progress, signal }) => {
      for (let index = 0; index < 200; index++) void progress(index, undefined, frame);
      await new Promise((resolve) => setImmediate(resolve));
      isAborted = signal.aborted;
    });
    const response = await handler(modernRequest(modernCall("flood", {}, withToken)));
    await expect.poll(() => warnings).toEqual([expect.stringContaining("the reader is slow")]);
    await expect(response.text()).rejects.toThrow("the reader is slow");
    await expect.poll(() => isAborted).toBe(true);
  });

  test("is cut when it takes nothing for too long; one that takes a little is not", async () => {
    const clock = createVirtualClock();
    const { handler, registry, warnings } = mount({ clock, stallMs: 1000 });
    let isAborted = false;
    registry.register("flood", {}, async function* (_, { signal }) {
      signal.addEventListener("abort", () => (isAborted = true), { once: true });
      for (let index = 1; ; index++) yield { type: "progress", progress: index, message: frame };
    });
    const reader = readerOf(await handler(modernRequest(modernCall("flood", {}, withToken))));
    for (let round = 0; round < 5; round++) {
      await clock.advance(900);
      await reader.next();
    }
    expect(warnings).toEqual([]);
    await clock.advance(2000);
    expect(warnings).toEqual(["A client was cut off: the reader took nothing for 1000 ms"]);
    await expect.poll(() => isAborted).toBe(true);
    expect(clock.sleeping).toBe(0);
  });

  test("leaves no timer behind when it has taken everything", async () => {
    const clock = createVirtualClock();
    const { handler, registry } = mount({ clock, stallMs: 1000 });
    registry.register("large", {}, async (_, { progress }) => {
      await progress(1, undefined, frame.repeat(10));
    });
    await (await handler(modernRequest(modernCall("large", {}, withToken)))).text();
    expect(clock.sleeping).toBe(0);
  });
});

describe("a handler that stops", () => {
  test("refuses calls, and is drained when those in flight have ended", async () => {
    const { handler, waits, steps } = mount();
    const running = handler(modernRequest(modernCall("silent")));
    await expect.poll(() => waits.get("silent")).toBe("running");
    let isDrained = false;
    const drained = handler.drain().then(() => (isDrained = true));
    expect((await handler(new Request("http://localhost:8787/health"))).status).toBe(503);
    expect((await handler(modernRequest(modernCall("echo", { message: "" })))).status).toBe(503);
    expect(isDrained).toBe(false);
    steps.allow();
    expect(await (await running).json()).toMatchObject({ result: { content: [{ text: "spoken" }] } });
    await drained;
  });

  test("ends listen streams with their result", async () => {
    const { handler } = mount();
    const listen = modern("subscriptions/listen", { notifications: { toolsListChanged: true } });
    const reader = readerOf(await handler(modernRequest(listen)));
    await reader.next();
    const drained = handler.drain();
    expect(await reader.next()).toMatchObject({ id: 1, result: {} });
    await drained;
  });

  test("aborts, when it is closed, what still runs, and answers that its outcome is not known", async () => {
    const { handler, waits } = mount();
    const silent = handler(modernRequest(modernCall("silent")));
    const streaming = await handler(modernRequest(modernCall("wait", { key: "k" }, withToken)));
    const begun = await handler(post(initializeOf("2025-11-25")));
    const headers = { "mcp-session-id": begun.headers.get("mcp-session-id")!, accept: sse };
    const standalone = await handler(new Request(url, { headers }));
    await expect.poll(() => waits.get("silent")).toBe("running");
    await handler.close();
    expect([waits.get("silent"), waits.get("k")]).toEqual(["aborted", "aborted"]);
    const lost = { error: { data: { delivery: "outcome_unknown" } } };
    expect(await (await silent).json()).toMatchObject(lost);
    expect(await streaming.text()).toContain('"delivery":"outcome_unknown"');
    expect(await standalone.text()).toContain("retry:");
    expect((await handler(new Request(url, { headers }))).status).toBe(503);
    expect((await handler(post(initializeOf("2025-11-25")))).status).toBe(503);
    await handler.close();
  });
});
