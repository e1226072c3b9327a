// A gateway that is killed with -9 and started again knows the ids it gave out, and runs nothing twice.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { elicit } from "../../packages/core/src/mcp/question.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { type CliGateway, startCliGateway } from "./support/cli-gateway.ts";
import { createTaskCaller } from "./support/task-caller.ts";

const yes = { action: "accept", content: { ok: true } };

describe("a gateway that was killed", () => {
  const folder = mkdtempSync(join(tmpdir(), "junctor-task-kill-"));
  const config = join(folder, "gateway.json");
  const log: string[] = [];
  let behind: HttpListener;

  beforeAll(async () => {
    const registry = createRegistry();
    registry.register("report", { task: "required" }, async (_, { askNow }) => {
      log.push("ran");
      const { ok } = {
        ok: (await askNow({ ok: elicit("Go on?", { ok: { type: "boolean" } }) })).elicited("ok"),
      };
      return JSON.stringify(ok);
    });
    behind = await listenHttp(createServer(registry, { name: "up", version: "1" }), { port: 0 });
    writeFileSync(config, JSON.stringify({ mcpServers: { up: { type: "http", url: behind.url } } }), {
      mode: 0o600,
    });
  });
  afterAll(async () => {
    await behind?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const start = async (): Promise<CliGateway & { readonly url: string }> => {
    const gateway = startCliGateway(config, "--port", "0");
    return Object.assign(gateway, { url: `http://127.0.0.1:${await gateway.port}/mcp` });
  };
  const kill = async (gateway: CliGateway): Promise<void> => {
    gateway.process.kill("SIGKILL");
    expect(await gateway.exited).toEqual({ code: null, signal: "SIGKILL" });
  };

  test("answers for a task by the same id, and takes its answers", async () => {
    await using first = await start();
    const taskId = await createTaskCaller(first.url).begin("up__report");
    await kill(first);
    await using second = await start();
    const caller = createTaskCaller(second.url);
    await caller.until(taskId, "input_required");
    await caller("tasks/update", { taskId, inputResponses: { ok: yes } });
    expect(await caller.until(taskId, "completed")).toMatchObject({
      result: { content: [{ text: JSON.stringify(yes) }] },
    });
    expect(log.splice(0)).toEqual(["ran"]);
  });

  test("goes on with a call that was held for a caller without tasks, by the state it gave out", async () => {
    const call = { name: "up__report", arguments: {} };
    const capabilities = { elicitation: {} };
    await using first = await start();
    const { result: asked } = await createTaskCaller(first.url, { capabilities })("tools/call", call);
    await kill(first);
    await using second = await start();
    const { result } = await createTaskCaller(second.url, { capabilities })("tools/call", {
      ...call,
      requestState: asked["requestState"],
      inputResponses: { ok: yes },
    });
    expect(result).toMatchObject({ content: [{ text: JSON.stringify(yes) }] });
    expect(log.splice(0)).toEqual(["ran"]);
  });
});
