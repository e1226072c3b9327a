import { describe, expect, test } from "vitest";
import { createDeferred } from "../../packages/core/src/async/queue.ts";
import { extensionIds } from "../../packages/core/src/mcp/extension.ts";
import { elicit } from "../../packages/core/src/mcp/question.ts";
import { createSeal } from "../../packages/core/src/mcp/seal.ts";
import { inputRequired } from "../../packages/core/src/provider/content.ts";
import {
  type CallEnd,
  type Middleware,
  withMiddleware,
} from "../../packages/core/src/provider/middleware.ts";
import type { Provider } from "../../packages/core/src/provider/provider.ts";
import { withBudget } from "../../packages/junctor/src/context/with-budget.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createMemoryTasks } from "../../packages/server/src/registry/memory-tasks.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";
import { createServer, type ServerOptions } from "../../packages/server/src/wire/server.ts";
import { toProvider, withoutMethods } from "../support/use-provider.ts";

const prefix = "io.modelcontextprotocol";
const declared = { elicitation: {}, extensions: { [`${prefix}/tasks`]: {} } };
const info = { name: "test", version: "1" };
const secret = "a secret that is long enough for a seal";

interface Reply {
  readonly status: number;
  readonly result: { readonly [member: string]: unknown };
  readonly error: { readonly code: number; readonly message: string; readonly data?: unknown };
}

interface Caller {
  (method: string, params?: object, given?: { capabilities?: object; name?: string }): Promise<Reply>;
}

interface Served extends AsyncDisposable {
  readonly url: string;
  as(caller: string): Caller;
}

async function serve(provider: Provider, options: ServerOptions = {}): Promise<Served> {
  const listener = await listenHttp(createServer(provider, info, options), {
    port: 0,
    authenticate: (header) => header("authorization")?.slice("Bearer ".length),
  });
  return {
    url: listener.url,
    as: (caller) => (method, params, given) =>
      post(listener.url, caller, { method, params: params ?? {} }, given),
    [Symbol.asyncDispose]: () => listener.close(),
  };
}

async function post(
  url: string,
  caller: string,
  { method, params }: { readonly method: string; readonly params: object },
  { capabilities = declared, name }: { capabilities?: object; name?: string } = {},
): Promise<Reply> {
  const mirrored =
    name ?? (params as { name?: string; taskId?: string }).name ?? (params as { taskId?: string }).taskId;
  const _meta = {
    [`${prefix}/protocolVersion`]: "2026-07-28",
    [`${prefix}/clientInfo`]: info,
    [`${prefix}/clientCapabilities`]: capabilities,
  };
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      authorization: `Bearer ${caller}`,
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(mirrored === undefined ? {} : { "mcp-name": mirrored }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }),
  });
  const body = (await response.json()) as Pick<Reply, "result" | "error">;
  return { status: response.status, result: body.result, error: body.error };
}

/** A tool that asks twice under one key, and then waits to be let go. */
function createWorker(tasks = createMemoryTasks()): {
  readonly registry: Registry;
  readonly aborted: Promise<unknown>;
  readonly runs: () => number;
} {
  const registry = createRegistry({ tasks });
  const aborted = createDeferred<unknown>();
  let runs = 0;
  const form = elicit("Go on?", { ok: { type: "boolean" } }, ["ok"]);
  registry.register("ask", { task: "required" }, async (_, { askNow, status }) => {
    runs++;
    await status("asking");
    const first = (await askNow({ ok: form, other: form })).elicited("ok");
    const second = (await askNow({ ok: form })).elicited("ok");
    return { first, second };
  });
  registry.register("wait", { task: "optional" }, async (_, { signal }) => {
    runs++;
    if (signal.aborted) return "";
    return new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        aborted.resolve(signal.reason);
        reject(signal.reason as Error);
      });
    });
  });
  registry.register("quick", { task: "optional" }, () => "done");
  registry.register("again", { task: "required" }, (_, { answers }) =>
    answers.elicited("ok") === undefined ? inputRequired({ ok: form }) : "answered",
  );
  registry.register("plain", {}, () => "plain");
  return { registry, aborted: aborted.promise, runs: () => runs };
}

function waitForAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

async function begin(call: Caller, name: string): Promise<string> {
  const { result } = await call("tools/call", { name });
  expect(result).toMatchObject({ resultType: "task", ttlMs: 3_600_000, pollIntervalMs: 1000 });
  for (const member of ["result", "error", "inputRequests", "requestState"])
    expect(result).not.toHaveProperty(member);
  return result["taskId"] as string;
}

async function until(call: Caller, taskId: string, status: string): Promise<Reply["result"]> {
  for (;;) {
    const { result } = await call("tasks/get", { taskId });
    if (result["status"] === status) return result;
    expect(["working", "input_required"]).toContain(result["status"]);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const yes = { action: "accept", content: { ok: true } };
const no = { action: "decline" };

describe("tasks over HTTP", () => {
  test("a task asks under keys that are never used twice, takes partial answers and ends once", async () => {
    const { registry, runs } = createWorker();
    await using at = await serve(registry);
    const call = at.as("alice");
    const taskId = await begin(call, "ask");
    const first = await until(call, taskId, "input_required");
    expect(first).toMatchObject({ statusMessage: "asking" });
    expect(Object.keys(first["inputRequests"] as object)).toEqual(["ok", "other"]);
    const wrong = await call("tasks/update", {
      taskId,
      inputResponses: { ok: yes, other: { action: "maybe" } },
    });
    expect(wrong.error).toMatchObject({ code: -32602 });
    const partial = await call("tasks/update", { taskId, inputResponses: { ok: yes, stray: yes } });
    expect(partial.result).toMatchObject({ resultType: "complete" });
    const second = (await call("tasks/get", { taskId })).result;
    expect(Object.keys(second["inputRequests"] as object)).toEqual(["other"]);
    await call("tasks/update", { taskId, inputResponses: { ok: no, other: no } });
    const third = await until(call, taskId, "input_required");
    expect(Object.keys(third["inputRequests"] as object)).toEqual(["ok-2"]);
    await call("tasks/update", { taskId, inputResponses: { "ok-2": no } });
    const done = await until(call, taskId, "completed");
    expect(done["result"]).toMatchObject({ structuredContent: { first: yes, second: no } });
    await call("tasks/cancel", { taskId });
    expect(await until(call, taskId, "completed")).toEqual(done);
    expect(runs()).toBe(1);
  });

  test("a handler that returns questions is asked in the task and runs again", async () => {
    await using at = await serve(createWorker().registry);
    const call = at.as("alice");
    const taskId = await begin(call, "again");
    await until(call, taskId, "input_required");
    await call("tasks/update", { taskId, inputResponses: { ok: yes } });
    const { result } = await until(call, taskId, "completed");
    expect(result).toMatchObject({ content: [{ text: "answered" }] });
  });

  test("a caller that cannot be asked gets the lack of it as the end of the task", async () => {
    await using at = await serve(createWorker().registry);
    const only = { extensions: declared.extensions };
    const call: Caller = (method, params) => at.as("alice")(method, params, { capabilities: only });
    const task = await until(call, await begin(call, "ask"), "failed");
    expect(task["error"]).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { elicitation: {} } },
    });
  });

  test("cancelling aborts the work, and a second time changes nothing", async () => {
    const { registry, aborted } = createWorker();
    await using at = await serve(registry);
    const call = at.as("alice");
    const taskId = await begin(call, "wait");
    expect((await call("tasks/cancel", { taskId })).result).toMatchObject({ resultType: "complete" });
    expect(await aborted).toMatchObject({ name: "AbortError" });
    const ended = await until(call, taskId, "cancelled");
    await call("tasks/cancel", { taskId });
    expect(await until(call, taskId, "cancelled")).toEqual(ended);
  });

  test("foreign, altered and unknown ids are refused alike", async () => {
    await using at = await serve(createWorker().registry);
    const taskId = await begin(at.as("alice"), "wait");
    const altered = taskId.slice(0, -1) + (taskId.endsWith("A") ? "B" : "A");
    const seen = [
      await at.as("mallory")("tasks/get", { taskId }),
      await at.as("mallory")("tasks/update", { taskId, inputResponses: {} }),
      await at.as("mallory")("tasks/cancel", { taskId }),
      await at.as("alice")("tasks/get", { taskId: altered }),
      await at.as("alice")("tasks/get", { taskId: "v1.nothing" }),
      await at.as("alice")("tasks/cancel", { taskId: "x".repeat(8000) }),
    ];
    const refused = { code: -32602, message: expect.stringContaining("Unknown task") as string };
    for (const { error } of seen) expect(error).toMatchObject(refused);
    expect((await at.as("alice")("tasks/get", { taskId })).result).toMatchObject({ status: "working" });
  });

  test("undeclared callers are refused before their ids are looked at, and served at once where they may be", async () => {
    await using at = await serve(createWorker().registry);
    const call: Caller = (method, params) => at.as("alice")(method, params, { capabilities: {} });
    const needs = {
      code: -32021,
      data: { requiredCapabilities: { extensions: { [`${prefix}/tasks`]: {} } } },
    };
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"])
      expect(await call(method, { taskId: "any" })).toMatchObject({ status: 400, error: needs });
    expect(await call("tools/call", { name: "ask" })).toMatchObject({ error: needs });
    const listening = await call("subscriptions/listen", { notifications: { taskIds: ["any"] } });
    expect(listening.error).toMatchObject(needs);
    const { result } = await call("tools/call", { name: "quick" });
    expect(result).toMatchObject({ resultType: "complete", content: [{ text: "done" }] });
    for (const method of ["tasks/list", "tasks/result"])
      expect((await call(method, { taskId: "any" })).error).toMatchObject({ code: -32601 });
  });

  test("the header Mcp-Name repeats the id", async () => {
    await using at = await serve(createWorker().registry);
    const wrong = await at.as("alice")("tasks/get", { taskId: "a" }, { name: "b" });
    expect(wrong).toMatchObject({ status: 400, error: { code: -32020 } });
  });

  test("only a server with tasks offers them, and to modern callers alone", async () => {
    const { registry } = createWorker();
    await using at = await serve(registry);
    const offered = (await at.as("a")("server/discover")).result["capabilities"];
    expect(offered).toMatchObject({ extensions: { [`${prefix}/tasks`]: {} } });
    const response = await fetch(at.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        authorization: "Bearer a",
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "initialize",
        params: { protocolVersion: "2025-11-25", capabilities: declared, clientInfo: info },
      }),
    });
    expect(await response.text()).not.toContain("extensions");
    const bare = createRegistry();
    bare.register("plain", {}, () => "");
    await using without = await serve(bare);
    expect((await without.as("a")("server/discover")).result["capabilities"]).not.toHaveProperty(
      "extensions",
    );
    expect((await without.as("a")("tasks/get", { taskId: "x" })).error).toMatchObject({ code: -32601 });
  });

  test("a provider that hides its tasks never starts one", async () => {
    const { registry } = createWorker();
    await using at = await serve(withoutMethods(withMiddleware(registry, []), "tasks/get"));
    const { result } = await at.as("alice")("tools/call", { name: "quick" });
    expect(result).toMatchObject({ resultType: "complete" });
  });

  test("a tool that runs as a task is served too if it is the first, and came after its server", async () => {
    const registry = createRegistry();
    await using at = await serve(registry);
    registry.register("late", { task: "required" }, () => "done");
    const { result } = await at.as("alice")("tools/call", { name: "late" });
    expect(result).toMatchObject({ resultType: "task" });
    const undeclared = await at.as("alice")("tools/call", { name: "late" }, { capabilities: {} });
    expect(undeclared.error).toMatchObject({ code: -32021 });
  });

  test.each<readonly [string, (provider: Provider, seen: CallEnd[]) => Provider]>([
    [
      "middleware",
      (provider, seen) => withMiddleware(provider, [{ afterCall: (_, end) => void seen.push(end) }]),
    ],
    ["a budget", (provider) => withBudget(provider, { maxResultTokens: 500 })],
  ])("work behind %s: questions, results and an end by cancelling", async (what, wrap) => {
    const registry = createRegistry();
    const seen: CallEnd[] = [];
    const provider = wrap(registry, seen);
    // Also a tool that is registered after the provider was wrapped.
    registry.register("again", { task: "required" }, (_, { answers }) =>
      answers.elicited("ok") === undefined ? inputRequired({ ok: elicit("Go on?", {}) }) : "x".repeat(10_000),
    );
    registry.register("wait", { task: "required" }, (_, { signal }) => waitForAbort(signal));
    await using at = await serve(provider);
    const call = at.as("alice");
    const taskId = await begin(call, "again");
    await until(call, taskId, "input_required");
    await call("tasks/update", { taskId, inputResponses: { ok: yes } });
    const { result } = await until(call, taskId, "completed");
    if (what === "a budget") expect(JSON.stringify(result)).toContain("read_result");
    else
      expect(seen.at(-1)).toMatchObject({
        kind: "complete",
        result: { value: { content: [{ text: "x".repeat(10_000) }] } },
      });
    const waiting = await begin(call, "wait");
    await call("tasks/cancel", { taskId: waiting });
    await until(call, waiting, "cancelled");
    expect((await at.as("bob")("tasks/get", { taskId: waiting })).error).toMatchObject({ code: -32602 });
  });

  test("a filter of a middleware hides the tasks of a tool with the tool", async () => {
    const { registry } = createWorker();
    let hidden: string | undefined;
    const filterTools: NonNullable<Middleware["filterTools"]> = (items) =>
      items.filter((item) => !("name" in item) || item.name !== hidden);
    await using at = await serve(withMiddleware(registry, [{ filterTools }]));
    const call = at.as("alice");
    const taskId = await begin(call, "quick");
    await until(call, taskId, "completed");
    hidden = "quick";
    expect((await call("tasks/get", { taskId })).error).toMatchObject({ code: -32602 });
  });

  test("a listener receives each state until the end, and a late one the end", async () => {
    const { registry } = createWorker();
    await using at = await serve(registry);
    const call = at.as("alice");
    const taskId = await begin(call, "again");
    const heard: string[] = [];
    const stop = new AbortController();
    const listen = async (): Promise<void> => {
      const _meta = {
        [`${prefix}/protocolVersion`]: "2026-07-28",
        [`${prefix}/clientInfo`]: info,
        [`${prefix}/clientCapabilities`]: declared,
      };
      const response = await fetch(at.url, {
        method: "POST",
        signal: stop.signal,
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          authorization: "Bearer alice",
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": "subscriptions/listen",
        },
        body: JSON.stringify({
          jsonrpc: "2.0",
          id: 7,
          method: "subscriptions/listen",
          params: { notifications: { taskIds: [taskId, "v1.foreign"] }, _meta },
        }),
      });
      let text = "";
      for await (const chunk of response.body ?? []) {
        text += Buffer.from(chunk as Uint8Array).toString();
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const data = text
            .slice(0, end)
            .split("\n")
            .find((line) => line.startsWith("data:"));
          text = text.slice(end + 2);
          if (data === undefined || data === "data:" || data === "data: ") continue;
          const { method, params } = JSON.parse(data.slice(5)) as {
            method: string;
            params: { status?: string; notifications?: object; taskId?: string };
          };
          if (method === "notifications/subscriptions/acknowledged")
            expect(params.notifications).toEqual({ taskIds: [taskId] });
          if (method !== "notifications/tasks") continue;
          expect(params.taskId).toBe(taskId);
          heard.push(params.status ?? "");
          if (params.status === "input_required")
            await call("tasks/update", { taskId, inputResponses: { ok: yes } });
          if (params.status === "completed") return;
        }
      }
    };
    await listen();
    expect(heard[0]).toBe("input_required");
    expect(heard.at(-1)).toBe("completed");
    await listen();
    expect(heard.slice(-2)).toEqual(["completed", "completed"]);
    stop.abort();
  });
});

describe("jobs", () => {
  interface Build {
    readonly number: number;
  }

  function createBuilds(builds: Map<number, string>): Registry {
    const registry = createRegistry();
    registry.registerJob(
      "build",
      { input: { type: "object", properties: { target: { type: "string" } } } },
      {
        start: (): Build => {
          builds.set(builds.size + 1, "working");
          return { number: builds.size };
        },
        status: ({ number }) => {
          const status = builds.get(number);
          if (status === "asking") return { status: "input_required", asks: { ok: elicit("Go on?", {}) } };
          if (status === "done") return { status: "completed", result: `Build ${number} is done` };
          return status === "broken" ? { status: "failed", message: "No space" } : { status: "working" };
        },
        answer: ({ number }, answers) =>
          void builds.set(number, answers.elicited("ok")?.action === "accept" ? "done" : "broken"),
        cancel: ({ number }) => void builds.set(number, "broken"),
        ttlMs: 86_400_000,
      },
    );
    return registry;
  }

  test("a job works behind middleware", async () => {
    const builds = new Map<number, string>();
    await using at = await serve(withMiddleware(createBuilds(builds), [{}]));
    const { result } = await at.as("alice")("tools/call", { name: "build", arguments: { target: "x" } });
    const taskId = result["taskId"] as string;
    builds.set(1, "done");
    expect((await at.as("alice")("tasks/get", { taskId })).result).toMatchObject({
      status: "completed",
      result: { content: [{ text: "Build 1 is done" }] },
    });
  });

  test("a status that there is not, and a result that does not fit, reach the log with the name of the job", async () => {
    const errors: string[] = [];
    const registry = createRegistry({
      onError: (error, tool) => void errors.push(`${tool}: ${String(error)}`),
    });
    let status: unknown = { status: "done" };
    registry.registerJob(
      "build",
      { output: { type: "object", required: ["url"] } },
      { start: () => 1, status: () => status as { status: "completed"; result: object } },
    );
    await using at = await serve(registry, { onError: (error) => void errors.push(String(error)) });
    const call = at.as("alice");
    const taskId = (await call("tools/call", { name: "build" })).result["taskId"];
    expect((await call("tasks/get", { taskId })).error).toMatchObject({ code: -32603 });
    expect(errors.splice(0)).toEqual([
      expect.stringContaining('Job "build": status() gave the status string "done"'),
    ]);
    for (const result of [{}, { content: [{ type: "img" }], isError: "yes" }]) {
      status = { status: "completed", result };
      expect((await call("tasks/get", { taskId })).result).toMatchObject({
        status: "completed",
        result: { isError: true },
      });
      expect(errors.splice(0)).toEqual([
        expect.stringMatching(/^build: TypeError: The tool's output does not fit/),
      ]);
    }
  });

  test("another replica with the same secret answers for a job, and one with another secret does not", async () => {
    const builds = new Map<number, string>();
    await using first = await serve(createBuilds(builds), { seal: createSeal({ secret }) });
    const { result } = await first.as("alice")("tools/call", { name: "build", arguments: { target: "x" } });
    const taskId = result["taskId"] as string;
    await first[Symbol.asyncDispose]();
    await using second = await serve(createBuilds(builds), { seal: createSeal({ secret }) });
    const call = second.as("alice");
    expect((await call("tasks/get", { taskId })).result).toMatchObject({
      status: "working",
      ttlMs: 86_400_000,
    });
    builds.set(1, "asking");
    expect((await call("tasks/get", { taskId })).result).toMatchObject({ inputRequests: { ok: {} } });
    await call("tasks/update", { taskId, inputResponses: { ok: { action: "accept", content: {} } } });
    expect((await call("tasks/get", { taskId })).result).toMatchObject({
      status: "completed",
      result: { content: [{ text: "Build 1 is done" }] },
    });
    await call("tasks/cancel", { taskId });
    expect((await call("tasks/get", { taskId })).result).toMatchObject({
      status: "failed",
      error: { message: "No space" },
    });
    expect((await second.as("bob")("tasks/get", { taskId })).error).toMatchObject({ code: -32602 });
    await using third = await serve(createBuilds(builds));
    expect((await third.as("alice")("tasks/get", { taskId })).error).toMatchObject({ code: -32602 });
    expect(builds.size).toBe(1);
  });

  test("state that does not fit into an id is refused with the limit", async () => {
    const registry = createRegistry();
    registry.registerJob(
      "huge",
      {},
      { start: () => "x".repeat(5000), status: () => ({ status: "working" }) },
    );
    await using at = await serve(registry);
    const { error } = await at.as("alice")("tools/call", { name: "huge" });
    expect(error).toMatchObject({ code: -32603, message: expect.stringContaining("4096") as string });
  });
});

describe("limits of tasks", () => {
  test("tasks expire, running or not", async () => {
    const clock = createVirtualClock();
    const { registry, aborted } = createWorker(createMemoryTasks({ clock }));
    await using at = await serve(registry);
    const call = at.as("alice");
    const waiting = await begin(call, "wait");
    const ended = await begin(call, "quick");
    await until(call, ended, "completed");
    await clock.advance(3_600_000);
    for (const taskId of [ended, waiting])
      expect((await call("tasks/get", { taskId })).error.code).toBe(-32602);
    await aborted;
  });

  test("work ends when its task expires, also if no caller asks for the task again", async () => {
    const clock = createVirtualClock();
    const { registry, aborted } = createWorker(createMemoryTasks({ clock }));
    await using at = await serve(registry);
    await begin(at.as("alice"), "wait");
    await clock.advance(3_600_000);
    expect(String(await aborted)).toContain("cancelled");
    expect(clock.sleeping).toBe(0);
  });

  test("an id opens for ten years", async () => {
    let now = Date.now();
    const seal = createSeal({ now: () => now });
    const task = { ref: "1", createdAt: 0, updatedAt: 0, ttlMs: null };
    const provider = toProvider(
      [{ name: "long", inputSchema: { type: "object" } }],
      () => ({ kind: "working", task }),
      { offers: () => ({ serves: () => true, extensions: { [extensionIds.tasks]: {} } }) },
    );
    await using at = await serve(provider, { seal });
    const call = at.as("alice");
    const taskId = (await call("tools/call", { name: "long" })).result["taskId"];
    const years = 10 * 365 * 24 * 3_600_000;
    now += years - 1;
    expect((await call("tasks/get", { taskId })).result["status"]).toBe("working");
    now += 1;
    for (const method of ["tasks/get", "tasks/cancel"])
      expect((await call(method, { taskId })).error.code).toBe(-32602);
  });

  test("a caller at its limit loses ended tasks first, is refused then, and hurts no other", async () => {
    const { registry } = createWorker(createMemoryTasks({ maxTasks: 8, maxPerCaller: 2 }));
    await using at = await serve(registry);
    const call = at.as("alice");
    const ended = await begin(call, "quick");
    await until(call, ended, "completed");
    const kept = [await begin(call, "wait"), await begin(call, "wait")];
    expect((await call("tasks/get", { taskId: ended })).error.code).toBe(-32602);
    const refused = await call("tools/call", { name: "wait" });
    expect(refused.error).toMatchObject({ code: -32603, data: { code: "rpc.too_many" } });
    await begin(at.as("bob"), "wait");
    for (const taskId of kept) await call("tasks/cancel", { taskId });
    await begin(call, "quick");
  });

  test("results that no room is left for fail their task with the reason", async () => {
    const { registry } = createWorker(createMemoryTasks({ maxResultBytes: 100 }));
    registry.register("big", { task: "required" }, () => "x".repeat(1000));
    await using at = await serve(registry);
    const call = at.as("alice");
    const failed = await until(call, await begin(call, "big"), "failed");
    expect(failed["error"]).toMatchObject({
      message: expect.stringContaining("bytes of task results") as string,
    });
    await until(call, await begin(call, "quick"), "completed");
  });
});
