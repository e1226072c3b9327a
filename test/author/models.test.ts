import { once } from "node:events";
import { type AddressInfo, connect as connectSocket, createServer as createTcpServer } from "node:net";
import Anthropic from "@anthropic-ai/sdk";
import { generateText, stepCountIs } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { toAiSdkTools } from "../../packages/client/src/ai-sdk.ts";
import { toAnthropicTools } from "../../packages/client/src/anthropic.ts";
import { type Client, connect } from "../../packages/client/src/index.ts";
import { type ModelClient, toOpenAITools } from "../../packages/client/src/openai.ts";
import { elicit } from "../../packages/core/src/mcp/index.ts";
import { failure, image, inputRequired, text } from "../../packages/core/src/provider/index.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { createRandom } from "../support/random.ts";

const pixel = Buffer.from([1, 2, 3]);

/** Tools for what the SDKs must cope with. `ran` gets the number of each call of `count`. */
function createTools(ran: number[] = []): Registry {
  const registry = createRegistry();
  registry.register("count", { input: z.object({ n: z.number() }) }, ({ n }) => {
    ran.push(n);
    return `ran ${n}`;
  });
  registry.register("photo", { description: "Takes a photo." }, () => [
    text("Here it is:"),
    image(pixel, "image/png"),
  ]);
  registry.register("sum", { output: z.object({ sum: z.number() }) }, () => ({ sum: 3 }));
  registry.register("fail", {}, () => failure("There is no such city."));
  registry.register("ask", {}, (_, { answers }) => {
    const name = answers.elicited("name");
    if (name === undefined) return inputRequired({ name: elicit("Who?", { name: { type: "string" } }) });
    return `Hello, ${name.action === "accept" ? String(name.content?.["name"]) : "nobody"}.`;
  });
  registry.register("wait", {}, async (_, { signal }) => {
    await once(signal, "abort");
    return "stopped";
  });
  registry.register("a.dotted/name", {}, () => "dotted");
  return registry;
}

async function connectTools(ran?: number[]): Promise<Client> {
  const server = createServer(createTools(ran), { name: "tools", version: "1.0.0" });
  const handlers = { elicit: () => ({ action: "accept" as const, content: { name: "Ada" } }) };
  return connect({ server }, { handlers });
}

describe("the AI SDK", () => {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };

  /** Has a model call one tool, and gives what the model is told of it. */
  async function callBy(
    client: ModelClient,
    toolName: string,
    input: object,
    abortSignal?: AbortSignal,
  ): Promise<unknown> {
    const call = { type: "tool-call" as const, toolCallId: "1", toolName, input: JSON.stringify(input) };
    const model = new MockLanguageModelV3({
      doGenerate: [
        { content: [call], finishReason: { unified: "tool-calls", raw: undefined }, usage, warnings: [] },
        {
          content: [{ type: "text", text: "done" }],
          finishReason: { unified: "stop", raw: undefined },
          usage,
          warnings: [],
        },
      ],
    });
    const tools = await toAiSdkTools(client);
    const { text: said } = await generateText({
      model,
      tools,
      prompt: "go",
      stopWhen: stepCountIs(3),
      ...(abortSignal === undefined ? {} : { abortSignal }),
    });
    expect(said).toBe("done");
    const last = model.doGenerateCalls[1]?.prompt.at(-1);
    return last?.role === "tool" && last.content[0]?.type === "tool-result" && last.content[0].output;
  }

  test.each<[string, object, unknown]>([
    ["count", { n: 1 }, { type: "text", value: "ran 1" }],
    ["sum", {}, { type: "text", value: '{"sum":3}' }],
    ["fail", {}, { type: "error-text", value: "There is no such city." }],
    ["ask", {}, { type: "text", value: "Hello, Ada." }],
    [
      "photo",
      {},
      {
        type: "content",
        value: [
          { type: "text", text: "Here it is:" },
          { type: "image-data", data: "AQID", mediaType: "image/png" },
        ],
      },
    ],
    [
      "count",
      { n: "one" },
      { type: "error-text", value: expect.stringContaining("The call was not made: ") as string },
    ],
  ])("the model is told what %s gives for %j", async (name, input, told) => {
    await using client = await connectTools();
    expect(await callBy(client, name, input)).toEqual(told);
  });

  test("the schema of a tool reaches the model, and a name that models refuse is changed", async () => {
    await using client = await connectTools();
    const tools = await toAiSdkTools(client);
    expect(Object.keys(tools).filter((name) => !/^[\w-]{1,64}$/.test(name))).toEqual([]);
    expect(tools["count"]?.inputSchema["~standard"].jsonSchema.input()).toMatchObject({ required: ["n"] });
    const dotted = Object.keys(tools).find((name) => name.startsWith("a_dotted_name_")) ?? "";
    expect(await callBy(client, dotted, {})).toEqual({ type: "text", value: "dotted" });
  });

  test("its signal stops the call on the server", async () => {
    await using client = await connectTools();
    const stop = new AbortController();
    const calling = callBy(client, "wait", {}, stop.signal);
    stop.abort();
    await expect(calling).rejects.toThrow(/abort/i);
  });
});

/** An SDK's `fetch` that answers with these bodies in turn, and keeps what was sent. */
function scripted(bodies: readonly object[]): { readonly sent: unknown[]; readonly fetch: typeof fetch } {
  const sent: unknown[] = [];
  const left = [...bodies];
  return {
    sent,
    fetch: async (_, init) => {
      sent.push(JSON.parse(init?.body as string));
      return Response.json(left.shift());
    },
  };
}

describe("the SDK of OpenAI", () => {
  test("a response calls tools, and is answered with text and images", async () => {
    await using client = await connectTools();
    const calls = [
      { type: "function_call", call_id: "1", name: "photo", arguments: "" },
      { type: "function_call", call_id: "2", name: "count", arguments: '{"n":2}' },
      { type: "function_call", call_id: "3", name: "nothing", arguments: "{}" },
      { type: "function_call", call_id: "4", name: "count", arguments: "{n" },
    ];
    const { fetch, sent } = scripted([{ output: calls }, { output: [] }]);
    const openai = new OpenAI({ apiKey: "none", fetch });
    const tools = await toOpenAITools(client);
    const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: "go" }];
    const response = await openai.responses.create({ model: "m", input, tools: tools.responses });
    for (const item of response.output)
      if (item.type === "function_call") input.push(await tools.answer(item));
    await openai.responses.create({ model: "m", input, tools: tools.responses });
    expect((sent[0] as { tools: unknown[] }).tools[0]).toMatchObject({
      type: "function",
      name: "count",
      parameters: { required: ["n"] },
    });
    expect((sent[1] as { input: { output: unknown }[] }).input.slice(1).map(({ output }) => output)).toEqual([
      [
        { type: "input_text", text: "Here it is:" },
        { type: "input_image", image_url: "data:image/png;base64,AQID", detail: "auto" },
      ],
      "ran 2",
      'There is no tool "nothing".',
      expect.stringContaining("The call was not made: its arguments are not JSON"),
    ]);
  });

  test("chat completions run them by themselves", async () => {
    await using client = await connectTools();
    const call = { id: "1", type: "function", function: { name: "count", arguments: '{"n":5}' } };
    const { fetch, sent } = scripted([
      {
        choices: [
          {
            index: 0,
            finish_reason: "tool_calls",
            message: { role: "assistant", content: null, tool_calls: [call] },
          },
        ],
      },
      { choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "done" } }] },
    ]);
    const openai = new OpenAI({ apiKey: "none", fetch });
    const { chat } = await toOpenAITools(client);
    const runner = openai.chat.completions.runTools({
      model: "m",
      messages: [{ role: "user", content: "go" }],
      tools: chat,
    });
    expect(await runner.finalContent()).toBe("done");
    expect((sent[1] as { messages: unknown[] }).messages.at(-1)).toMatchObject({
      role: "tool",
      content: "ran 5",
    });
  });
});

describe("the SDK of Anthropic", () => {
  const message = (content: unknown[], stop_reason: string): object => ({
    id: "m",
    type: "message",
    role: "assistant",
    model: "m",
    content,
    stop_reason,
    usage: { input_tokens: 1, output_tokens: 1 },
  });
  const uses = [
    { type: "tool_use", id: "1", name: "photo", input: {} },
    { type: "tool_use", id: "2", name: "fail", input: {} },
  ];
  const blocks = [
    { type: "text", text: "Here it is:" },
    { type: "image", source: { type: "base64", media_type: "image/png", data: "AQID" } },
  ];

  test("its runner calls tools by itself", async () => {
    await using client = await connectTools();
    const { fetch, sent } = scripted([
      message(uses, "tool_use"),
      message([{ type: "text", text: "done" }], "end_turn"),
    ]);
    const anthropic = new Anthropic({ apiKey: "none", fetch });
    const { runnable } = await toAnthropicTools(client);
    const messages = [{ role: "user" as const, content: "go" }];
    const last = await anthropic.beta.messages.toolRunner({
      model: "m",
      max_tokens: 9,
      messages,
      tools: runnable,
    });
    expect(last.content).toMatchObject([{ text: "done" }]);
    expect((sent[1] as { messages: { content: unknown }[] }).messages.at(-1)?.content).toMatchObject([
      { tool_use_id: "1", content: blocks },
      {
        tool_use_id: "2",
        is_error: true,
        content: expect.stringContaining("There is no such city.") as string,
      },
    ]);
  });

  test("a loop of one's own answers each block", async () => {
    await using client = await connectTools();
    const { fetch, sent } = scripted([message(uses, "tool_use"), message([], "end_turn")]);
    const anthropic = new Anthropic({ apiKey: "none", fetch });
    const tools = await toAnthropicTools(client);
    const messages: Anthropic.MessageParam[] = [{ role: "user", content: "go" }];
    const ask = { model: "m", max_tokens: 9, messages, tools: tools.definitions };
    const { content } = await anthropic.messages.create(ask);
    const answers: Anthropic.ToolResultBlockParam[] = [];
    for (const block of content) if (block.type === "tool_use") answers.push(await tools.answer(block));
    messages.push({ role: "assistant", content }, { role: "user", content: answers });
    await anthropic.messages.create(ask);
    expect((sent[1] as { messages: { content: unknown }[] }).messages.at(-1)?.content).toEqual([
      { type: "tool_result", tool_use_id: "1", content: blocks, is_error: false },
      {
        type: "tool_result",
        tool_use_id: "2",
        content: [{ type: "text", text: "There is no such city." }],
        is_error: true,
      },
    ]);
  });
});

interface DeafProxy extends AsyncDisposable {
  readonly url: string;
  /** The port that it leads to. */
  target: number;
}

/** A way to a server by which calls of tools arrive, and their answers do not. */
async function startDeafProxy(): Promise<DeafProxy> {
  const proxy = createTcpServer((downstream) => {
    const upstream = connectSocket(deaf.target, "127.0.0.1");
    let isCall = false;
    downstream
      .on("error", () => {})
      .on("data", (bytes) => {
        isCall ||= bytes.includes("tools/call");
        upstream.write(bytes);
      });
    upstream.on("error", () => {});
    upstream.on("data", (bytes) => {
      if (!isCall) return void downstream.write(bytes);
      downstream.resetAndDestroy();
      upstream.destroy();
    });
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const deaf: DeafProxy = {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp`,
    target: 0,
    [Symbol.asyncDispose]: async () => {
      proxy.close();
      await once(proxy, "close");
    },
  };
  return deaf;
}

test("under faults no call is made twice, and what the model is told is true", async () => {
  const ran: number[] = [];
  const server = createServer(createTools(ran), { name: "tools", version: "1.0.0" });
  const gone = await listenHttp(server, { port: 0 });
  await using deaf = await startDeafProxy();
  await using listener = await listenHttp(server, { port: 0, allowedHosts: [new URL(deaf.url).host] });
  deaf.target = Number(new URL(listener.url).port);
  await using up = await connect(listener.url, { revision: "2026-07-28" });
  await using down = await connect(gone.url, { revision: "2026-07-28", validate: false });
  await gone[Symbol.asyncDispose]();
  await using cut = await connect(deaf.url, { revision: "2026-07-28", validate: false });
  const next = createRandom(7);
  const ways = [up, down, cut];
  const flaky: ModelClient = {
    listTools: (options) => up.listTools(options),
    streamTool: (...call) => (ways[Math.floor(next() * ways.length)] ?? up).streamTool(...call),
  };
  const { answer } = await toOpenAITools(flaky, { retries: 1 });
  const told = new Map<number, string>();
  for (let n = 0; n < 60; n++) {
    const call = {
      type: "function_call" as const,
      call_id: String(n),
      name: "count",
      arguments: JSON.stringify({ n }),
    };
    told.set(n, (await answer(call)).output as string);
  }
  const doubled = ran.filter((n, index) => ran.indexOf(n) !== index);
  expect(doubled).toEqual([]);
  const kinds = { done: 0, notMade: 0, unknown: 0 };
  for (const [n, said] of told) {
    if (said === `ran ${n}`) kinds.done++;
    else if (said.startsWith("The call was not made: ")) kinds.notMade++;
    else if (said.startsWith("It is not known whether the call was carried out")) kinds.unknown++;
    else throw new Error(said);
    if (said.startsWith("The call was not made: ")) expect(ran).not.toContain(n);
    if (said === `ran ${n}`) expect(ran).toContain(n);
  }
  expect(Object.values(kinds).filter((count) => count === 0)).toEqual([]);
});
