// Servers behind a gateway that make odd use of tasks.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import { missingExtension } from "../../packages/core/src/mcp/extension.ts";
import { elicit } from "../../packages/core/src/mcp/question.ts";
import type { Outcome, Provider } from "../../packages/core/src/provider/provider.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { toProvider } from "../support/use-provider.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";
import { createTaskCaller, tasksId } from "./support/task-caller.ts";

const form = elicit("Go on?", { ok: { type: "boolean" } });
const yes = { action: "accept", content: { ok: true } };
const done = (text: string): Outcome => ({
  kind: "complete",
  result: RawJson.fromValue({ content: [{ type: "text", text }] }),
});
const working: Outcome = { kind: "working" };
const asking: Outcome = { kind: "input_required", asks: { ok: form } };

/** What a tool's task says, look by look; the last is said again and again. */
const scripts: { readonly [tool: string]: readonly Outcome[] } = {
  wakes: [done("first"), working],
  revises: [done("first"), done("second")],
  repeats: [asking, asking, asking, done("at last")],
  endless: [working],
};

/** A server whose tasks follow a script. */
function createOdd(): { readonly provider: Provider; readonly log: string[] } {
  const log: string[] = [];
  const looks = new Map<string, number>();
  const inTask = (ref: string, outcome: Outcome): Outcome => ({
    ...outcome,
    task: { ref, createdAt: 0, updatedAt: 0, ttlMs: null, pollMs: 1 },
  });
  const done: Outcome = { kind: "complete", result: RawJson.fromText("{}") };
  const tools = [...Object.keys(scripts), "long"];
  const provider = toProvider(
    tools.map((name) => ({ name, inputSchema: { type: "object" } })),
    ({ method, name, ref = "", arguments: args }, { capabilities: { extensions = {} } }) => {
      const [tool = ""] = ref.split(" ");
      switch (method) {
        case "tools/call": {
          if (!(tasksId in extensions)) throw missingExtension(tasksId);
          log.push(`ran ${name}`);
          return inTask(name === "long" ? "x".repeat(1500) : `${name} ${log.length}`, working);
        }
        case "tasks/get": {
          const script = scripts[tool] ?? [];
          const look = looks.get(ref) ?? 0;
          looks.set(ref, look + 1);
          return inTask(ref, script[Math.min(look, script.length - 1)]!);
        }
        case "tasks/update":
          log.push(`answered ${tool} ${Object.keys(args.value as object).join()}`);
          return done;
        default:
          log.push(`cancelled ${tool}`);
          return done;
      }
    },
    { offers: () => ({ serves: (method) => /^t(?:ool|ask)s/.test(method), extensions: { [tasksId]: {} } }) },
  );
  return { provider, log };
}

describe("a server behind a gateway", () => {
  const { provider, log } = createOdd();
  let behind: HttpListener;
  let at: TestGateway;
  beforeAll(async () => {
    behind = await listenHttp(createServer(provider, { name: "odd", version: "1" }), { port: 0 });
    at = await startTestGateway({
      mcpServers: { odd: { type: "http", url: behind.url } },
      junctor: { servers: { odd: { maxTotalMs: 1500, timeoutMs: 1500 } } },
    });
  });
  afterAll(async () => {
    await at?.[Symbol.asyncDispose]();
    await behind?.close();
  });

  test.each(["wakes", "revises"])("that changes a task after its end (%s) is not believed", async (tool) => {
    const caller = createTaskCaller(at.url);
    const taskId = await caller.begin(`odd__${tool}`);
    await caller.until(taskId, "completed");
    expect((await caller("tasks/get", { taskId })).error).toMatchObject({
      code: -32603,
      data: { code: "upstream.failed", server: "odd" },
    });
  });

  test("that asks again under a key that was answered has its caller asked once", async () => {
    const caller = createTaskCaller(at.url, { capabilities: { elicitation: {} } });
    const call = { name: "odd__repeats", arguments: {} };
    const { result: asked } = await caller("tools/call", call);
    expect(asked["inputRequests"]).toEqual({ ok: form });
    const answers = { requestState: asked["requestState"], inputResponses: { ok: yes } };
    const { result } = await caller("tools/call", { ...call, ...answers });
    expect(result).toMatchObject({ content: [{ text: "at last" }] });
    expect(log.filter((line) => line === "ran repeats")).toHaveLength(1);
    expect(log.filter((line) => line.startsWith("answered repeats"))).toHaveLength(1);
  });

  test("that never ends a task has it cancelled when the time of a held call is over", async () => {
    const caller = createTaskCaller(at.url, { capabilities: {} });
    const { error } = await caller("tools/call", { name: "odd__endless", arguments: {} });
    expect(error).toMatchObject({
      code: -32603,
      data: { code: "upstream.timeout", delivery: "outcome_unknown" },
    });
    await expect.poll(() => log).toContain("cancelled endless");
    expect(log.filter((line) => line === "ran endless")).toHaveLength(1);
  });

  test("that gives a task an id too long to pass on has its call fail, and says why", async () => {
    const { error } = await createTaskCaller(at.url)("tools/call", { name: "odd__long", arguments: {} });
    expect(error).toMatchObject({ code: -32603, data: { code: "upstream.failed" } });
    expect(error.message).toContain("1024");
  });
});
