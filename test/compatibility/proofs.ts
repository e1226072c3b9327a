import type { ExpectStatic } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import type { Revision } from "../../packages/core/src/mcp/revision.ts";
import type { Tool, ToolResult } from "../../packages/core/src/mcp/types.ts";
import { type CallEvent } from "../../packages/core/src/provider/context.ts";
import type { Change } from "../../packages/core/src/provider/provider.ts";
import type { Bench } from "./bench.ts";
import type { Feature } from "./cells.ts";

/** What a proof has to work with. */
export interface Subject {
  readonly bench: Bench;
  readonly client: Client;
  readonly revision: Revision;
  /** Tells this cell's calls from all others. */
  readonly nonce: string;
  /** The one of the test, because several run at once. */
  readonly expect: ExpectStatic;
}

/** Resolves when a feature works, and rejects when it does not. */
export type Proof = (subject: Subject) => Promise<void>;

const textOf = ({ content }: ToolResult): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");

export const proofs: { readonly [Kind in Feature]: Proof } = {
  call: async ({ client, nonce, expect }) => {
    expect(textOf(await client.callTool("up__echo", { nonce }))).toBe(nonce);
  },

  // The server goes on only when the first piece was heard.
  stream: async ({ bench, client, nonce, expect }) => {
    const heard: (string | undefined)[] = [];
    for await (const part of client.streamTool("up__recite", { nonce })) {
      if (part.kind === "result") heard.push(textOf(part.result));
      if (part.kind === "progress") heard.push(part.message);
      if (heard.length === 1) bench.tell("go", nonce);
    }
    expect(heard).toEqual([`one ${nonce} `, "two", `one ${nonce} two`]);
  },

  progress: async ({ client, nonce, expect }) => {
    const { onEvent, events } = createEar();
    await client.callTool("up__count", { nonce }, { onEvent });
    expect(events).toEqual([
      { kind: "progress", progress: 1, total: 2 },
      { kind: "progress", progress: 2, total: 2 },
    ]);
  },

  log: async ({ client, nonce, expect }) => {
    // For some seconds after a call was given up, what a pipe logs may be that call's and is nobody's.
    const chat = async (): Promise<unknown> => {
      const { onEvent, events } = createEar();
      await client.callTool("up__chat", { nonce }, { onEvent, logLevel: "info" });
      return events;
    };
    const heard = [{ kind: "log", level: "warning", data: { nonce } }];
    await expect.poll(chat, { interval: 250 }).toMatchObject(heard);
  },

  cancel: async ({ bench, client, nonce, expect }) => {
    const controller = new AbortController();
    const called = client.callTool("up__hold", { nonce }, { signal: controller.signal });
    const ended = called.catch((error: unknown) => error);
    await expect.poll(() => bench.count("run", nonce)).toBe(1);
    controller.abort();
    expect(await ended).toMatchObject({ name: "AbortedError" });
    await expect.poll(() => bench.count("cancelled", nonce)).toBe(1);
  },

  "list change": async ({ bench, client, nonce, expect }) => {
    const changes: Change[] = [];
    const stopListening = client.onChange?.((change) => changes.push(change));
    // To be told of a resource is agreed on; by then the client is told of lists as well.
    const stopWatching = await client.watchResource("note://today", () => {});
    bench.tell("grow", nonce);
    await expect.poll(() => changes).toContainEqual({ part: "tools" });
    const names = async (): Promise<readonly string[]> => (await client.listTools()).map(({ name }) => name);
    await expect.poll(names).toContain(`up__grown_${nonce}`);
    stopWatching();
    stopListening?.();
  },

  "resource update": async ({ bench, client, nonce, expect }) => {
    const updated: string[] = [];
    const uri = "note://today";
    const stopWatching = await client.watchResource(uri, (each) => updated.push(each));
    bench.tell("touch", nonce);
    await expect.poll(() => updated).toContain(uri);
    expect((await client.readResource(uri)).contents).toMatchObject([
      { uri, text: expect.stringMatching(new RegExp(`touch\\.${nonce}\\b`)) as unknown },
    ]);
    stopWatching();
  },

  elicit: (subject) => expectAnswer(subject, "up__greet", `Ada ${subject.nonce}`),
  sample: (subject) => expectAnswer(subject, "up__poem", subject.nonce),
  roots: (subject) => expectAnswer(subject, "up__where", "file:///home"),

  completion: async ({ client, expect }) => {
    const ref = { type: "ref/prompt", name: "up__review" } as const;
    const { values } = await client.complete(ref, { name: "day", value: "t" });
    expect(values).toEqual(["tuesday", "thursday"]);
  },

  view: async ({ bench, revision, expect }) => {
    await using client = await bench.connect(revision, "host");
    expect(await client.readView(await findTool(client, "up__show"))).toEqual({
      uri: "ui://show/page.html",
      html: "<p>shown</p>",
      csp: { connectDomains: ["https://a.test"] },
    });
  },

  // By the origin that the gateway tells, and as a host does that passes the name of the page on as it is.
  "app call": async ({ bench, revision, nonce, expect }) => {
    await using client = await bench.connect(revision, "host");
    const show = await findTool(client, "up__show");
    expect(textOf(await client.callFromApp(show, "zone", { nonce }))).toBe(`zone ${nonce}`);
    expect(textOf(await client.callTool("zone", { nonce }))).toBe(`zone ${nonce}`);
  },

  skill: async ({ client, expect }) => {
    const uris: string[] = [];
    for await (const { uri } of client.skills.list()) uris.push(uri);
    expect(uris).toEqual(["skill://up/refunds/SKILL.md"]);
    const skill = await client.skills.load("skill://up/refunds/SKILL.md");
    expect(skill.isVerified).toBe(true);
    expect(await skill.read("examples/late.md")).toContain("a week late");
  },

  task: async ({ bench, client, revision, nonce, expect }) => {
    const started = await client.startTool("up__work", { nonce });
    expect(started.kind).toBe(revision === "2026-07-28" ? "task" : "complete");
    const result = started.kind === "task" ? await started.task.result() : started.result;
    expect(textOf(result)).toBe(`worked ${nonce}`);
    expect(bench.count("run", nonce)).toBe(1);
  },
  "task that asks": (subject) => expectAnswer(subject, "up__survey", `Ada ${subject.nonce}`),

  resume: async ({ bench, revision, nonce, expect }) => {
    const { proxy } = bench;
    const cutsBefore = proxy?.cuts ?? 0;
    await using client = await bench.connect(revision, "proxy");
    proxy?.cutAfter(`one ${nonce}`);
    const called = client.callTool("up__recite", { nonce }, { onEvent: () => {} });
    await expect.poll(() => proxy?.cuts).toBe(cutsBefore + 1);
    bench.tell("go", nonce);
    expect(textOf(await called)).toBe(`one ${nonce} two`);
    expect(bench.count("run", nonce)).toBe(1);
  },
};

/** The tool asks, is answered, and ran once. */
async function expectAnswer(
  { bench, client, nonce, expect }: Subject,
  tool: string,
  answer: string,
): Promise<void> {
  expect(textOf(await client.callTool(tool, { nonce }))).toContain(answer);
  expect(bench.count("run", nonce)).toBe(1);
}

async function findTool(client: Client, name: string): Promise<Tool> {
  const tool = (await client.listTools()).find((each) => each.name === name);
  if (tool === undefined) throw new Error(`${name} is not listed`);
  return tool;
}

function createEar(): { readonly events: readonly CallEvent[]; onEvent(event: CallEvent): void } {
  const events: CallEvent[] = [];
  return { events, onEvent: (event) => void events.push(event) };
}
