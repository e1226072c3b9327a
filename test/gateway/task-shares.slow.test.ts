// To a server behind the gateway all callers are one, so the gateway shares the tasks of the server between them.
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { elicit } from "../../packages/core/src/mcp/question.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";
import { createTaskCaller, type TaskCaller } from "./support/task-caller.ts";

const hash = (key: string): string => createHash("sha256").update(key).digest("hex");
const keys = { ada: { sha256: hash("ada-key") }, bob: { sha256: hash("bob-key") } };

interface Stage extends AsyncDisposable {
  readonly ada: TaskCaller;
  readonly bob: TaskCaller;
  caller(key: string, capabilities: object): TaskCaller;
}

/** A gateway with two callers before a server with the limits that the toolkit sets: 1,024 tasks for one caller. */
async function startStage(): Promise<Stage> {
  const registry = createRegistry();
  const untilEnded = (signal: AbortSignal): Promise<string> =>
    new Promise((resolve) => signal.addEventListener("abort", () => resolve("stopped")));
  registry.register("wait", { task: "required" }, (_, { signal }) => untilEnded(signal));
  registry.register("quick", { task: "required" }, () => "done");
  registry.register("ask", { task: "required" }, async (_, { askNow }) => {
    await askNow({ ok: elicit("Go on?", { ok: { type: "boolean" } }) });
    return "done";
  });
  registry.register("either", { task: "optional" }, () => "done");
  const behind: HttpListener = await listenHttp(createServer(registry, { name: "up", version: "1" }), {
    port: 0,
  });
  const at: TestGateway = await startTestGateway({
    mcpServers: { up: { type: "http", url: behind.url } },
    junctor: { keys },
  });
  return {
    ada: createTaskCaller(at.url, { key: "ada-key" }),
    bob: createTaskCaller(at.url, { key: "bob-key" }),
    caller: (key, capabilities) => createTaskCaller(at.url, { key, capabilities }),
    [Symbol.asyncDispose]: async () => {
      await at[Symbol.asyncDispose]();
      await behind.close();
    },
  };
}

/** Begins so many tasks, 50 at a time; the ids of those that began, and the errors of the others. */
async function begin(caller: TaskCaller, count: number, tool = "up__wait") {
  const ids: string[] = [];
  const errors: { readonly code: number; readonly message: string; readonly data?: unknown }[] = [];
  for (let begun = 0; begun < count; begun += 50)
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const { result, error } = await caller("tools/call", { name: tool, arguments: {} });
        if (error === undefined) ids.push(result["taskId"] as string);
        else errors.push(error);
      }),
    );
  return { ids, errors };
}

describe("a caller that begins more tasks than its server has room for", () => {
  test("is refused what another caller needs, and may still call tools that need no task", async () => {
    await using stage = await startStage();
    const { ids, errors } = await begin(stage.ada, 2000);
    expect(ids.length).toBeGreaterThan(800);
    expect(ids.length).toBeLessThan(1024);
    expect(errors).toHaveLength(2000 - ids.length);
    for (const { code, message, data } of errors) {
      expect({ code, data }).toMatchObject({
        code: -32603,
        data: { code: "rpc.too_many", delivery: "not_sent" },
      });
      expect(message).toContain("You hold too many tasks of up");
    }
    const taskId = await stage.bob.begin("up__wait");
    expect((await stage.bob("tasks/get", { taskId })).result).toMatchObject({ status: "working" });
    const { result } = await stage.ada("tools/call", { name: "up__either", arguments: {} });
    expect(result).toMatchObject({ resultType: "complete", content: [{ text: "done" }] });

    await stage.bob("tasks/cancel", { taskId });
    for (const cancelled of ids.slice(0, 50)) await stage.ada("tasks/cancel", { taskId: cancelled });
    const again = await begin(stage.ada, 100);
    expect(again.ids).toHaveLength(50);
  });

  test("gets all of them when it looks at how they end", async () => {
    await using stage = await startStage();
    for (let round = 0; round < 24; round++) {
      const { ids, errors } = await begin(stage.ada, 50, "up__quick");
      expect(errors).toEqual([]);
      await Promise.all(ids.map((taskId) => stage.ada.until(taskId, "completed")));
    }
  });

  test("is refused as well where it knows no tasks, and leaves with their questions", async () => {
    await using stage = await startStage();
    const { errors } = await begin(stage.caller("ada-key", { elicitation: {} }), 1050, "up__ask");
    expect(errors.length).toBeGreaterThan(1050 - 1024);
    for (const { data } of errors) expect(data).toMatchObject({ code: "rpc.too_many" });
    await stage.bob.begin("up__wait");
  });
});
