import { describe, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createDeferred } from "../../packages/core/src/async/queue.ts";
import { RpcError } from "../../packages/core/src/errors/index.ts";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import { extensionIds } from "../../packages/core/src/mcp/extension.ts";
import { elicit } from "../../packages/core/src/mcp/question.ts";
import type {
  Answers,
  Offers,
  Operation,
  Outcome,
  Provider,
} from "../../packages/core/src/provider/provider.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { toProvider } from "../support/use-provider.ts";

const info = { name: "test", version: "1" };
const form = elicit("Go on?", { ok: { type: "boolean" } }, ["ok"]);
const accept = { action: "accept", content: { ok: true } } as const;

function createWorker(): { readonly registry: Registry; readonly aborted: Promise<void> } {
  const registry = createRegistry();
  const aborted = createDeferred<void>();
  registry.register("ask", { task: "required" }, async (_, { askNow, status }) => {
    await status("asking");
    const first = (await askNow({ ok: form })).elicited("ok");
    await status("asking again");
    const second = (await askNow({ ok: form })).elicited("ok");
    return `${first?.action} ${second?.action}`;
  });
  registry.register("wait", { task: "required" }, async (_, { signal, status }) => {
    await status("waiting");
    return new Promise<string>((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        aborted.resolve();
        reject(signal.reason as Error);
      });
    });
  });
  registry.register("broken", { task: "required" }, () => {
    throw new RpcError("rpc.invalid_params", "no", { data: { why: "because" } });
  });
  registry.register("checked", { task: "optional", output: { type: "object" } }, () => ({ done: true }));
  return { registry, aborted: aborted.promise };
}

describe("a client over HTTP with tasks", () => {
  test("waits for the result, reports the status and answers what is asked", async () => {
    await using listener = await listenHttp(createServer(createWorker().registry, info), { port: 0 });
    const told: (string | undefined)[] = [];
    let asked = 0;
    const elicited = (): typeof accept => {
      asked++;
      return accept;
    };
    await using client = await connect(listener.url, { tasks: true, handlers: { elicit: elicited } });
    const result = await client.callTool(
      "ask",
      {},
      {
        onEvent: (event) => {
          if (event.kind === "progress") told.push(event.message);
        },
      },
    );
    expect(result.content).toEqual([{ type: "text", text: "accept accept" }]);
    expect(asked).toBe(2);
    expect(told).toEqual(["asking", "asking again"].filter((text) => told.includes(text)));
    expect((await client.callTool("checked")).structuredContent).toEqual({ done: true });
  });

  test("gives tasks that another client finds by their ref, and cancels there", async () => {
    const { registry, aborted } = createWorker();
    await using listener = await listenHttp(createServer(registry, info), { port: 0 });
    const refs: string[] = [];
    {
      await using client = await connect(listener.url, { tasks: true, handlers: { elicit: () => accept } });
      for (const name of ["ask", "wait", "broken"]) {
        const started = await client.startTool(name);
        if (started.kind === "task") refs.push(started.task.ref);
      }
    }
    await using client = await connect(listener.url, { tasks: true, handlers: { elicit: () => accept } });
    const [ask = "", wait = "", broken = ""] = refs;
    const seen: string[] = [];
    const onStatus = ({ status }: { readonly status: string }): void => void seen.push(status);
    expect((await client.task(ask).result({ onStatus })).content).toEqual([
      { type: "text", text: "accept accept" },
    ]);
    expect(seen.at(-1)).toBe("completed");
    await expect(client.task(broken).result()).rejects.toMatchObject({
      rpcCode: -32602,
      data: { why: "because" },
    });
    expect(await client.task(wait).get()).toMatchObject({ status: "working", ttlMs: 3_600_000 });
    // Who stops waiting leaves the task running.
    const waiting = client.task(wait).result({ signal: AbortSignal.abort() });
    await expect(waiting).rejects.toMatchObject({ name: "AbortedError" });
    expect(await client.task(wait).get()).toMatchObject({ status: "working" });
    await client.task(wait).cancel();
    await aborted;
    await expect(client.task(wait).result()).rejects.toThrow("The task was cancelled");
    await expect(client.task(`${wait}x`).get()).rejects.toMatchObject({ rpcCode: -32602 });
  });

  test("cancels the task of a call that is given up", async () => {
    const { registry, aborted } = createWorker();
    await using listener = await listenHttp(createServer(registry, info), { port: 0 });
    await using client = await connect(listener.url, { tasks: true });
    const stop = new AbortController();
    const onEvent = (): void => stop.abort();
    const call = client.callTool("wait", {}, { signal: stop.signal, onEvent });
    await expect(call).rejects.toMatchObject({ name: "AbortedError" });
    await aborted;
  });

  test("that did not declare tasks gets an error that names them, and optional tools at once", async () => {
    await using listener = await listenHttp(createServer(createWorker().registry, info), { port: 0 });
    await using client = await connect(listener.url);
    await expect(client.callTool("wait")).rejects.toMatchObject({ rpcCode: -32021 });
    expect(await client.startTool("checked")).toMatchObject({ kind: "complete" });
    await using legacy = await connect(listener.url, { tasks: true, revision: "2025-11-25" });
    expect((await legacy.callTool("checked")).structuredContent).toEqual({ done: true });
    await expect(legacy.callTool("wait")).rejects.toMatchObject({ rpcCode: -32021 });
  });
});

describe("servers that do not keep to the rules", () => {
  /** A server whose task goes through these states, one for each look; the last one stays. */
  function createScripted(states: readonly Outcome[]): {
    readonly provider: Provider;
    readonly answers: Answers[];
    readonly looks: () => number;
    readonly cancels: () => number;
  } {
    let looks = 0;
    let cancels = 0;
    const answers: Answers[] = [];
    const task = { ref: "one", createdAt: 0, updatedAt: 0, ttlMs: null, pollMs: 1 };
    const done: Outcome = { kind: "complete", result: RawJson.fromText("{}") };
    const call = ({ method, arguments: args }: Operation): Outcome => {
      if (method === "tools/call") return { kind: "working", task };
      if (method === "tasks/get")
        return { ...(states[Math.min(looks++, states.length - 1)] ?? { kind: "working" }), task };
      if (method === "tasks/cancel") cancels++;
      else answers.push(args.value as Answers);
      return done;
    };
    const offers = (): Offers => ({ serves: () => true, extensions: { [extensionIds.tasks]: {} } });
    const provider = toProvider([{ name: "do", inputSchema: { type: "object" } }], call, { offers });
    return { provider, answers, looks: () => looks, cancels: () => cancels };
  }
  const completed: Outcome = { kind: "complete", result: RawJson.fromValue({ content: [] }) };
  const asking: Outcome = { kind: "input_required", asks: { ok: form } };

  test("a key that is asked again is answered once", async () => {
    const { provider, answers } = createScripted([asking, asking, { kind: "working" }, asking, completed]);
    await using client = await connect(
      { server: createServer(provider, info) },
      { tasks: true, handlers: { elicit: () => accept } },
    );
    await client.callTool("do");
    expect(answers.map((given) => Object.keys(given))).toEqual([["ok"]]);
  });

  test("a task is not looked at after its end", async () => {
    const { provider, looks } = createScripted([completed, { kind: "working" }]);
    await using client = await connect({ server: createServer(provider, info) }, { tasks: true });
    await client.callTool("do");
    expect(looks()).toBe(1);
  });

  test("a task that never ends is cancelled when the time of its call is over", async () => {
    const clock = createVirtualClock();
    const { provider, cancels, looks } = createScripted([{ kind: "working" }]);
    await using client = await connect({ server: createServer(provider, info) }, { tasks: true, clock });
    await client.listTools();
    const call = client.callTool("do", {}, { maxTotalMs: 60_000 });
    call.catch(() => {});
    for (let second = 0; second < 61; second++) await clock.advance(1000);
    await expect(call).rejects.toMatchObject({ name: "TimeoutError" });
    expect(cancels()).toBe(1);
    expect(looks()).toBeLessThanOrEqual(301);
  });

  test("a question that the client cannot answer ends the call and the task", async () => {
    const { provider, cancels } = createScripted([asking]);
    await using client = await connect({ server: createServer(provider, info) }, { tasks: true });
    await expect(client.callTool("do")).rejects.toMatchObject({ name: "RpcError" });
    expect(cancels()).toBe(1);
  });

  test("a task for a client that did not declare tasks is an error", async () => {
    const { provider } = createScripted([completed]);
    await using client = await connect({ server: createServer(provider, info) });
    await expect(client.callTool("do")).rejects.toThrow('unknown type "task"');
  });
});
