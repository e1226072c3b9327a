import { elicit, listRoots, sample } from "../../packages/core/src/mcp/question.ts";
import type { Server } from "../../packages/core/src/mcp/server.ts";
import { inputRequired, text } from "../../packages/core/src/provider/content.ts";
import type { ListenHttpOptions } from "../../packages/server/src/http/http-options.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createCompletionRegistry } from "../../packages/server/src/registry/completion.ts";
import { createPromptRegistry } from "../../packages/server/src/registry/prompts.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";
import {
  createResourceRegistry,
  type ResourceRegistry,
} from "../../packages/server/src/registry/resources.ts";
import { createServer, type ServerOptions } from "../../packages/server/src/wire/server.ts";
import { createSteps, type Steps } from "./steps.ts";

/** A server with a tool for everything HTTP has to carry, driven by the test that started it. */
export interface HttpTools {
  readonly server: Server;
  readonly registry: Registry;
  readonly resources: ResourceRegistry;
  /** Lets `recite` and `poll` go on. */
  readonly steps: Steps;
  /** What became of each call of `wait`, by its key. */
  readonly waits: Map<string, "running" | "aborted">;
}

/** A schema of arguments that are strings, all of them required. */
export const strings = (...names: readonly string[]): { readonly [keyword: string]: unknown } => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
  required: names,
});

export function createHttpTools(options: ServerOptions = {}): HttpTools {
  const resources = createResourceRegistry();
  const prompts = createPromptRegistry();
  const completion = createCompletionRegistry();
  completion.registerPrompt("guide", "city", (typed) =>
    ["Bern", "Oslo"].filter((city) => city.startsWith(typed)),
  );
  const registry = createRegistry({ resources, prompts, completion, onError: () => {} });
  const steps = createSteps();
  const waits = new Map<string, "running" | "aborted">();

  registry.register("echo", { input: strings("message") }, ({ message }) => String(message));

  registry.register("recite", { description: "Streams three words, each when allowed." }, async function* () {
    for (const word of ["one ", "two ", "three"]) {
      await steps.step();
      yield word;
    }
    await steps.step();
  });

  const count = { type: "object", properties: { count: { type: "integer" } }, required: ["count"] };
  registry.register("burst", { input: count }, async function* ({ count }) {
    for (let index = 1; index <= Number(count); index++)
      yield { type: "progress" as const, progress: index, message: `piece ${index}` };
    return "done";
  });

  registry.register("wait", { input: strings("key") }, async ({ key }, { signal, progress }) => {
    waits.set(String(key), "running");
    const aborted = new Promise<void>((resolve) =>
      signal.addEventListener("abort", () => resolve(), { once: true }),
    );
    await progress(1);
    await aborted;
    waits.set(String(key), "aborted");
    await progress(2);
    return "too late";
  });

  registry.register(
    "silent",
    { description: "Says nothing until it is allowed to end." },
    async (_, context) => {
      waits.set("silent", "running");
      context.signal.addEventListener("abort", () => waits.set("silent", "aborted"), { once: true });
      await steps.step(context.signal);
      return "spoken";
    },
  );

  registry.register(
    "poll",
    { description: "Sends the client away until it is done." },
    async (_, context) => {
      await context.release();
      await steps.step();
      return "worth the wait";
    },
  );

  registry.register("chat", {}, async (_, { log }) => {
    await log("debug", "quiet");
    await log("error", "loud");
    return "logged";
  });

  registry.register("greet", {}, (_, { answers }) => {
    const answer = answers.elicited("name");
    if (answer === undefined)
      return inputRequired({ name: elicit("What is your name?", { name: { type: "string" } }, ["name"]) }, 7);
    return answer.action === "accept" ? `Hello, ${String(answer.content["name"])}!` : `No: ${answer.action}`;
  });

  registry.register("poem", {}, (_, { answers }) => {
    const poem = answers.sampled("poem");
    if (poem !== undefined) return `${poem.model} wrote it`;
    const messages = [{ role: "user" as const, content: text("A poem, please.") }];
    return inputRequired({ poem: sample({ messages, maxTokens: 100 }) });
  });

  registry.register("where", {}, (_, { answers }) => {
    const roots = answers.roots("roots");
    return roots === undefined
      ? inputRequired({ roots: listRoots() })
      : roots.map(({ uri }) => uri).join(" ");
  });

  const region = { type: "string", "x-mcp-header": "Region" };
  const level = { type: "integer", "x-mcp-header": "Level" };
  const isDry = { type: "boolean", "x-mcp-header": "Dry" };
  registry.register("deploy", { input: { type: "object", properties: { region, level, isDry } } }, (args) =>
    JSON.stringify(args),
  );

  registry.register("crash", {}, () => {
    throw new Error("a secret detail");
  });

  registry.register("unspeakable", { description: "Gives what JSON cannot hold." }, async function* () {
    yield { type: "progress" as const, progress: 1 };
    return { content: [{ type: "text" as const, text: "x", _meta: { big: 1n } }] };
  });

  resources.register("note://today", { name: "today" }, () => "buy milk");
  prompts.register("hello", {}, () => "Hello!");
  const info = { name: "http-tools", version: "1.0.0" };
  const server = createServer(registry, info, { onError: () => {}, ...options });
  return { server, registry, resources, steps, waits };
}

export interface Listening extends HttpTools, AsyncDisposable {
  readonly port: number;
  readonly listener: HttpListener;
  readonly warnings: string[];
}

/** The tools behind a real port. */
export async function listen(
  options: ListenHttpOptions = {},
  serverOptions: ServerOptions = {},
): Promise<Listening> {
  const tools = createHttpTools(serverOptions);
  const warnings: string[] = [];
  const onWarning = (warning: string): void => void warnings.push(warning);
  const listener = await listenHttp(tools.server, { port: 0, graceMs: 200, onWarning, ...options });
  return {
    ...tools,
    listener,
    port: listener.port,
    warnings,
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}
