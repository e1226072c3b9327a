import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { isAtLeast } from "../../packages/core/src/mcp/revision.ts";
import type { Frame } from "../support/wire-schema.ts";
import {
  everythingServer,
  type CallResult,
  type Dialect,
  type Progress,
  type SdkClient,
} from "./sdk-client.ts";
import { v1Dialects } from "./sdk-v1.ts";
import { v2Dialects } from "./sdk-v2.ts";

/** For machines that are busy with something else. */

// One server process for each dialect; the tests of a dialect share it, and each leaves it usable.
describe.each<Dialect>([...v1Dialects, ...v2Dialects])("$name, with our toolkit", (dialect) => {
  const { revision } = dialect;
  const isModern = revision === "2026-07-28";
  const hasStructure = isAtLeast(revision, "2025-06-18");
  let client: SdkClient;

  beforeAll(async () => void (client = await dialect.connect(everythingServer())));
  afterEach(() => client.tap.assertValid());
  afterAll(async () => void (await client.close()));

  test("agrees on the revision, and learns who serves and what it can do", () => {
    expect(client.revision).toBe(revision);
    expect(client.serverInfo).toMatchObject({ name: "everything", version: "1.2.3" });
    expect(client.instructions).toBe("Try each tool once.");
    expect(client.capabilities).toMatchObject({
      tools: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      prompts: { listChanged: true },
      completions: {},
      logging: {},
    });
  });

  describe("tools", () => {
    test("are listed whole, page by page, in the order they were registered", async () => {
      const names = (await client.listTools()).map(({ name }) => name);
      expect(names.slice(0, 4)).toEqual(["echo", "measure", "count", "gallery"]);
      expect(names).toHaveLength(new Set(names).size);
      expect(names.length).toBeGreaterThanOrEqual(17);
    });

    test("answer with text", async () => {
      const message = 'naïve "quotes", \u2028, 🦊 and \\ backslash';
      expect(await textOf(client.callTool("echo", { message }))).toBe(message);
    });

    test("give structured output to clients that know it, and its text to all", async () => {
      await client.listTools();
      const result = await client.callTool("measure");
      expect(result.content).toEqual([{ type: "text", text: '{"celsius":21.5}' }]);
      expect(result.structuredContent).toEqual(hasStructure ? { celsius: 21.5 } : undefined);
    });

    test("give a list as structured output, wrapped for revisions that only know objects", async () => {
      await client.listTools();
      const { structuredContent } = await client.callTool("count", { to: 3 });
      const wrapped = hasStructure ? { result: [1, 2, 3] } : undefined;
      expect(structuredContent).toEqual(isModern ? [1, 2, 3] : wrapped);
    });

    test("give every type of content, as text where the revision lacks the type", async () => {
      const { content } = await client.callTool("gallery");
      const types = content.map(({ type }) => type);
      const audio = isAtLeast(revision, "2025-03-26") ? "audio" : "text";
      const link = isAtLeast(revision, "2025-06-18") ? "resource_link" : "text";
      expect(types).toEqual(["text", "image", audio, link, "resource"]);
      expect(content[1]).toMatchObject({ data: "AQID", mimeType: "image/png" });
      expect(content[4]).toMatchObject({ resource: { uri: "note://inline", text: "inside" } });
    });

    test("show the model the failures that are meant for it, and hide the others", async () => {
      expect(await client.callTool("refuse")).toMatchObject({
        isError: true,
        content: [{ text: "I would rather not." }],
      });
      const crashed = await client.callTool("crash");
      expect(crashed.isError).toBe(true);
      expect(JSON.stringify(crashed)).not.toContain("secret");
    });

    test("refuse arguments that do not fit, and say which and why", async () => {
      const result = await client.callTool("echo", { message: 5 });
      expect(result.isError).toBe(true);
      expect(await textOf(Promise.resolve(result))).toMatch(/message.*string/);
    });

    test("that do not exist are a protocol error", async () => {
      await expect(client.callTool("nowhere")).rejects.toMatchObject({ code: -32602 });
    });

    test("that write to the standard output do not disturb the wire", async () => {
      expect(await textOf(client.callTool("babble"))).toBe("quiet");
      expect(JSON.stringify(client.tap.frames)).not.toContain("stray");
    });

    test("answer concurrent calls each with its own", async () => {
      const messages = Array.from({ length: 50 }, (_, index) => `message ${index}`);
      const answers = messages.map((message) => textOf(client.callTool("echo", { message })));
      expect(await Promise.all(answers)).toEqual(messages);
    });
  });

  describe("a streaming tool", () => {
    test("sends what it yields when it yields it, and the whole at the end", async () => {
      const seen: Progress[] = [];
      const onprogress = (progress: Progress): void => {
        seen.push(progress);
        void client.callTool("nod");
      };
      expect(await textOf(client.callTool("recite", { isPaced: true }, { onprogress }))).toBe("one two");
      expect(seen.map(({ message }) => message)).toEqual(["one ", "half", "two"]);
      const numbers = seen.map(({ progress }) => progress);
      expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b));
    });

    test("sends its result after everything it yielded, however fast it is", async () => {
      const before = client.tap.frames.length;
      await client.callTool("recite", {}, { onprogress: () => {} });
      const sent = client.tap.frames.slice(before).filter(({ sender }) => sender === "server");
      const progress = "notifications/progress";
      expect(sent.map(({ frame }) => frame.method)).toEqual([progress, progress, progress, undefined]);
    });

    test("sends nothing but its result to clients that did not ask for progress", async () => {
      const before = client.tap.frames.length;
      expect(await textOf(client.callTool("recite"))).toBe("one two");
      expect(client.tap.frames.slice(before).filter(({ sender }) => sender === "server")).toHaveLength(1);
    });

    test("sends log messages to a caller that asked, from the level it asked for", async () => {
      const heard = countNotices(client, "notifications/message");
      await client.callTool("chat", {}, { logLevel: "warning" });
      await expect.poll(heard).toHaveLength(1);
      expect(heard()[0]?.params).toMatchObject({ level: "error", logger: "fixture", data: { what: "loud" } });
    });
  });

  test("a cancelled call aborts its tool, and nothing more is sent for it", async () => {
    const key = "a cancelled call";
    const { abort, signal } = abortable();
    const call = client.callTool("wait", { key }, { signal, onprogress: abort });
    await expect(call).rejects.toThrow(/abort/i);
    await expect.poll(() => textOf(client.callTool("wait_state", { key }))).toBe("aborted");
    await client.callTool("echo", { message: "what was sent for the call has come by now" });

    const frames = client.tap.frames.map(({ frame }) => frame);
    const request = frames.find(({ params }) => JSON.stringify(params)?.includes(`"key":"${key}"`))!;
    const { _meta } = request.params as { readonly _meta: { readonly progressToken: unknown } };
    const isAbout = ({ params }: Frame): boolean =>
      (params as { readonly progressToken?: unknown } | undefined)?.progressToken === _meta.progressToken;
    expect(frames.filter(isAbout)).toHaveLength(1);
    expect(frames.filter(({ id, method }) => id === request.id && method === undefined)).toEqual([]);
  });

  describe("a tool that asks", () => {
    test.runIf(isAtLeast(revision, "2025-06-18"))("gets what the user filled in", async () => {
      client.user.elicited = ({ message }) => ({ action: "accept", content: { name: `${message} Ada` } });
      expect(await textOf(client.callTool("greet"))).toBe("Hello, What is your name? Ada!");
    });

    test.runIf(isAtLeast(revision, "2025-06-18"))("learns that the user declined", async () => {
      client.user.elicited = () => ({ action: "decline" });
      expect(await textOf(client.callTool("greet"))).toBe("No name: decline");
    });

    test.runIf(isAtLeast(revision, "2025-06-18"))("may ask again, and remembers", async () => {
      client.user.elicited = ({ message }) => ({
        action: "accept",
        content: message === "What?" ? { dish: "soup" } : { table: 4 },
      });
      expect(await textOf(client.callTool("order"))).toBe("soup to table 4");
    });

    test.runIf(!isAtLeast(revision, "2025-06-18"))("fails where the revision has no forms", async () => {
      const result = await client.callTool("greet");
      expect(result.isError).toBe(true);
      expect(await textOf(Promise.resolve(result))).toContain("elicitation/create");
    });

    test("gets what the client's model wrote", async () => {
      expect(await textOf(client.callTool("poem"))).toBe("a-model wrote: Pipes, pipes, pipes.");
    });

    test("gets the roots", async () => {
      client.user.roots = () => ["file:///a", "file:///b"];
      expect(await textOf(client.callTool("where"))).toBe("file:///a file:///b");
    });
  });

  describe("resources", () => {
    test("are listed, with their templates", async () => {
      expect(await client.listResources()).toMatchObject([{ uri: "note://today" }, { uri: "note://pixel" }]);
      expect(await client.listTemplates()).toMatchObject([{ uriTemplate: "note://by-day/{day}" }]);
    });

    test.each([
      ["note://today", { mimeType: "text/plain", text: "buy milk" }],
      ["note://pixel", { mimeType: "image/png", blob: "BwgJ" }],
      ["note://by-day/friday", { mimeType: "text/plain", text: "the note of friday" }],
    ])("%s is read", async (uri, contents) => {
      expect(await client.readResource(uri)).toEqual([{ uri, ...contents }]);
    });

    test("that do not exist are a protocol error", async () => {
      await expect(client.readResource("note://never/was")).rejects.toThrow("note://never/was");
      const { frame } = client.tap.frames.at(-1)!;
      expect(frame.error).toMatchObject({ code: isModern ? -32602 : -32002 });
    });

    test("report their changes to clients for as long as these are subscribed", async () => {
      const heard = countNotices(client, "notifications/resources/updated");
      await client.callTool("touch");
      expect(heard()).toHaveLength(0);
      const stop = await client.watch("note://today");
      await client.callTool("touch");
      await expect.poll(heard).toHaveLength(1);
      expect(heard()[0]?.params).toMatchObject({ uri: "note://today" });
      await stop();
      await client.callTool("touch");
      expect(heard()).toHaveLength(1);
    });
  });

  test("a new tool is announced, and then listed and callable", async () => {
    const heard = countNotices(client, "notifications/tools/list_changed");
    const stop = await client.watch("note://today");
    await client.callTool("grow", { name: "sprout" });
    await expect.poll(heard).toHaveLength(1);
    expect((await client.listTools()).map(({ name }) => name)).toContain("sprout");
    expect(await textOf(client.callTool("sprout"))).toBe("grown");
    await stop();
  });

  describe("prompts", () => {
    test("are listed with their arguments", async () => {
      expect(await client.listPrompts()).toMatchObject([
        { name: "review", arguments: [{ name: "code", required: true }] },
        { name: "listen" },
      ]);
    });

    test("are filled in", async () => {
      expect(await client.getPrompt("review", { code: "x = 1" })).toMatchObject({
        description: "Reviews code.",
        messages: [{ role: "user", content: { type: "text", text: "Review this: x = 1" } }],
      });
    });

    test("give every type of content, as text where the revision lacks the type", async () => {
      const audio = isAtLeast(revision, "2025-03-26") ? "audio" : "text";
      const link = isAtLeast(revision, "2025-06-18") ? "resource_link" : "text";
      expect(await client.getPrompt("listen")).toMatchObject({
        messages: [{ content: { type: audio } }, { content: { type: link } }],
      });
    });

    test("that lack a required argument are a protocol error", async () => {
      await expect(client.getPrompt("review")).rejects.toMatchObject({ code: -32602 });
    });
  });

  test("arguments of prompts and variables of templates are completed", async () => {
    const ofPrompt = { type: "ref/prompt", name: "review" } as const;
    expect(await client.complete(ofPrompt, { name: "code", value: "f" })).toMatchObject({ values: ["f()"] });
    const ofTemplate = { type: "ref/resource", uri: "note://by-day/{day}" } as const;
    expect(await client.complete(ofTemplate, { name: "day", value: "t" })).toEqual({
      values: ["tuesday", "thursday"],
      total: 2,
      hasMore: false,
    });
  });

  test("a client that leaves ends the server's process at once and in order", async () => {
    const leaving = await dialect.connect(everythingServer());
    await leaving.callTool("echo", { message: "hi" });
    expect(await leaving.close()).toEqual({ code: 0, signal: null });
    leaving.tap.assertValid();
  });
});

async function textOf(result: Promise<CallResult>): Promise<string> {
  const { content } = await result;
  return content.map((block) => String(block["text"])).join("");
}

/** The notifications with this method from now on. */
function countNotices(client: SdkClient, method: string): () => SdkClient["notices"] {
  const before = client.notices.length;
  return () => client.notices.slice(before).filter((notice) => notice.method === method);
}

function abortable(): { abort: () => void; signal: AbortSignal } {
  const controller = new AbortController();
  return { abort: () => controller.abort(), signal: controller.signal };
}
