import { createHash } from "node:crypto";
// Tasks of modern servers behind a gateway: for callers that know them, and for those that do not.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { elicit } from "../../packages/core/src/mcp/question.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";
import { createTaskCaller, type Frame, tasksId } from "./support/task-caller.ts";

const secret = "4111 1111 1111 1111";
const form = elicit("Go on?", { ok: { type: "boolean" } }, ["ok"]);
const yes = { action: "accept", content: { ok: true } };

/** A modern server with tools that run as tasks, and what happened to them. */
function createWorker(): { readonly registry: Registry; readonly log: string[] } {
  const log: string[] = [];
  const registry = createRegistry();
  registry.register("report", { task: "required" }, async (_, { status }) => {
    log.push("report");
    await status(`reading ${secret}`);
    return `card ${secret}`;
  });
  registry.register("ask", { task: "required" }, async (_, { askNow, status }) => {
    log.push("ask");
    await status("asking");
    const first = (await askNow({ ok: form })).elicited("ok");
    const second = (await askNow({ ok: form, other: form })).elicited("ok");
    return JSON.stringify([first, second]);
  });
  registry.register("wait", { task: "required" }, (_, { signal }) => {
    log.push("wait");
    return new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        log.push("cancelled");
        reject(signal.reason as Error);
      });
    });
  });
  registry.register("fails", { task: "required" }, () => {
    throw new TypeError("broken");
  });
  registry.register("optional", { task: "optional" }, () => "done");
  return { registry, log };
}

const folder = mkdtempSync(join(tmpdir(), "junctor-tasks-"));
const hash = (key: string): string => createHash("sha256").update(key).digest("hex");
const keys = { ada: { sha256: hash("ada-key") }, bob: { sha256: hash("bob-key") } };

describe("tasks through a gateway", () => {
  const { registry, log } = createWorker();
  let behind: HttpListener;
  let at: TestGateway;
  const audit = join(folder, "audit.jsonl");
  const config = (more: object = {}): object => ({
    mcpServers: { up: { type: "http", url: behind.url } },
    junctor: { keys, redact: ["credit-card"], audit: { file: audit }, ...more },
  });

  beforeAll(async () => {
    behind = await listenHttp(createServer(registry, { name: "up", version: "1" }), { port: 0 });
    at = await startTestGateway(config());
  });
  afterAll(async () => {
    await at?.[Symbol.asyncDispose]();
    await behind?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const ada = (capabilities?: object) =>
    createTaskCaller(at.url, { key: "ada-key", ...(capabilities === undefined ? {} : { capabilities }) });
  const bob = () => createTaskCaller(at.url, { key: "bob-key" });
  const count = (word: string): number => log.filter((line) => line === word).length;
  const records = (): readonly { readonly [member: string]: unknown }[] =>
    readFileSync(audit, "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as { readonly [member: string]: unknown });

  test("a task has an id of the gateway's, which answers its caller and no other", async () => {
    const caller = ada();
    const taskId = await caller.begin("up__report");
    await caller.until(taskId, "completed");
    for (const method of ["tasks/get", "tasks/cancel"])
      expect((await bob()(method, { taskId })).error).toMatchObject({ code: -32602 });
    const altered = taskId.slice(0, -2) + (taskId.endsWith("AA") ? "BB" : "AA");
    expect((await caller("tasks/get", { taskId: altered })).error).toMatchObject({ code: -32602 });
    expect((await caller("tasks/get", { taskId: "x" })).error).toMatchObject({ code: -32602 });
    expect((await ada({})("tasks/get", { taskId })).error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { extensions: { [tasksId]: {} } } },
    });
  });

  test("an inlined result, a status and a question are redacted", async () => {
    const caller = ada();
    const result = await caller.until(await caller.begin("up__report"), "completed");
    expect(result).toMatchObject({
      statusMessage: "reading [redacted]",
      result: { content: [{ text: "card [redacted]" }] },
    });
    expect(JSON.stringify(result)).not.toContain("4111");
  });

  test("the audit has the call that became a task, and its end once", async () => {
    const caller = ada();
    const before = records().length;
    const taskId = await caller.begin("up__report");
    for (let looks = 0; looks < 3; looks++) await caller.until(taskId, "completed");
    await expect
      .poll(() =>
        records()
          .slice(before)
          .map(({ outcome, kind }) => `${String(kind)} ${String(outcome)}`),
      )
      .toEqual(["undefined begun", "undefined task", "task ok"]);
  });

  test("questions are asked and answered through the gateway, each key once", async () => {
    const caller = ada();
    const taskId = await caller.begin("up__ask");
    const first = await caller.until(taskId, "input_required");
    expect(first["inputRequests"]).toEqual({ ok: form });
    expect((await caller("tasks/update", { taskId, inputResponses: { ok: yes } })).result).toEqual(
      expect.objectContaining({ resultType: "complete" }),
    );
    let second = await caller.until(taskId, "input_required");
    while ("ok" in (second["inputRequests"] as object)) second = await caller.until(taskId, "input_required");
    expect(Object.keys(second["inputRequests"] as object)).toEqual(["ok-2", "other"]);
    await caller("tasks/update", { taskId, inputResponses: { "ok-2": yes, other: yes } });
    const done = await caller.until(taskId, "completed");
    expect(done["result"]).toMatchObject({ content: [{ text: JSON.stringify([yes, yes]) }] });
  });

  test("a task that fails is reported as failed, and one that is cancelled as cancelled", async () => {
    const caller = ada();
    const failed = await caller.until(await caller.begin("up__fails"), "completed");
    expect(failed["result"]).toMatchObject({ isError: true });
    const taskId = await caller.begin("up__wait");
    expect((await caller("tasks/cancel", { taskId })).result).toMatchObject({ resultType: "complete" });
    await caller.until(taskId, "cancelled");
    expect((await caller("tasks/cancel", { taskId })).result).toMatchObject({ resultType: "complete" });
  });

  test("a tool that is taken from its caller takes its tasks along, and gives them back", async () => {
    const caller = ada();
    const taskId = await caller.begin("up__report");
    await caller.until(taskId, "completed");
    await at.gateway.update(config({ deny: ["up__report"] }));
    for (const method of ["tasks/get", "tasks/cancel", "tasks/update"])
      expect((await caller(method, { taskId, inputResponses: {} })).error).toMatchObject({ code: -32602 });
    await at.gateway.update(config());
    await caller.until(taskId, "completed");
  });

  test("a modern caller that knows no tasks is served a tool that needs one, and it runs once", async () => {
    const before = count("report");
    const { result } = await ada({})("tools/call", { name: "up__report", arguments: {} });
    expect(result).toMatchObject({ resultType: "complete", content: [{ text: "card [redacted]" }] });
    expect(count("report")).toBe(before + 1);
  });

  test("its questions are those of the call, with a state that only it can use", async () => {
    const caller = ada({ elicitation: {} });
    const before = count("ask");
    const call = (more: object = {}) => caller("tools/call", { name: "up__ask", arguments: {}, ...more });
    const { result: first } = await call();
    expect(first).toMatchObject({ resultType: "input_required", inputRequests: { ok: form } });
    const requestState = first["requestState"] as string;
    const stolen = await bob()("tools/call", { name: "up__ask", arguments: {}, requestState });
    expect(stolen.error).toMatchObject({ code: -32602 });
    const { result: second } = await call({ requestState, inputResponses: { ok: yes } });
    expect(Object.keys(second["inputRequests"] as object)).toEqual(["ok-2", "other"]);
    const answers = { "ok-2": yes, other: yes };
    const last = await call({ requestState: second["requestState"], inputResponses: answers });
    expect(last.result).toMatchObject({ content: [{ text: JSON.stringify([yes, yes]) }] });
    expect(count("ask")).toBe(before + 1);
  });

  test("a caller that can be asked nothing is told what it lacks, and the task is cancelled", async () => {
    const { error } = await ada({})("tools/call", { name: "up__ask", arguments: {} });
    expect(error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { elicitation: { form: {} } } },
    });
  });

  test("a modern caller that hangs up cancels the task that is held for it", async () => {
    const [begun, cancelled] = [count("wait"), count("cancelled")];
    const leaving = new AbortController();
    const held = ada({})("tools/call", { name: "up__wait", arguments: {} }, leaving.signal);
    held.catch(() => {});
    await expect.poll(() => count("wait")).toBe(begun + 1);
    leaving.abort();
    await expect.poll(() => count("cancelled")).toBe(cancelled + 1);
  });

  test.each(["2024-11-05", "2025-06-18", "2025-11-25"] as const)(
    "a caller of %s is served a tool that needs a task, and hears where it is",
    async (revision) => {
      await using client = await connect(at.url, {
        revision,
        eras: createEraCache(),
        headers: { authorization: "Bearer ada-key" },
        handlers: { elicit: () => ({ action: "accept", content: { ok: true } }) },
      });
      const messages: unknown[] = [];
      const onEvent = (event: { readonly message?: string }): void => void messages.push(event.message);
      const { content } = await client.callTool("up__report", {}, { onEvent: onEvent as never });
      expect(content).toEqual([{ type: "text", text: "card [redacted]" }]);
      if (revision !== "2024-11-05") {
        const asked = await client.callTool("up__ask");
        expect(asked.content).toMatchObject([{ text: JSON.stringify([yes, yes]) }]);
      }
    },
  );

  test("with relay the refusal of the server reaches a caller that knows no tasks", async () => {
    await at.gateway.update(config({ servers: { up: { tasks: "relay" } } }));
    const before = count("report");
    expect((await ada({})("tools/call", { name: "up__report", arguments: {} })).error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { extensions: { [tasksId]: {} } } },
    });
    expect((await ada({})("tools/call", { name: "up__optional", arguments: {} })).result).toMatchObject({
      content: [{ text: "done" }],
    });
    expect(count("report")).toBe(before);
    await at.gateway.update(config());
  });

  test("a caller that listens receives each state of its own task, redacted, and of no other", async () => {
    const caller = ada();
    const taskId = await caller.begin("up__ask");
    const foreign = await bob().begin("up__ask");
    await caller.until(taskId, "input_required");
    const listening = new AbortController();
    const heard = caller.listen({ taskIds: [taskId, foreign, "x"] }, listening.signal);
    const next = async (): Promise<Frame> => (await heard.next()).value as Frame;
    expect(await next()).toMatchObject({
      method: "notifications/subscriptions/acknowledged",
      params: { notifications: { taskIds: [taskId] } },
    });
    expect(await next()).toMatchObject({
      method: "notifications/tasks",
      params: { taskId, status: "input_required", inputRequests: { ok: form } },
    });
    await caller("tasks/update", { taskId, inputResponses: { ok: yes } });
    let told = await next();
    while (!JSON.stringify(told).includes("ok-2")) told = await next();
    await caller("tasks/cancel", { taskId });
    while (told.params["status"] !== "cancelled") told = await next();
    listening.abort();
  });
});
