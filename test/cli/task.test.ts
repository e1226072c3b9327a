import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDeferred, type Deferred } from "../../packages/core/src/async/queue.ts";
import { elicit } from "../../packages/core/src/mcp/question.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { junctor, junctorOnTerminal } from "../support/junctor-bin.ts";

let http: HttpListener;
/** Lets the tools that wait end. */
let go: Deferred<void>;
let aborted = 0;
beforeAll(async () => {
  go = createDeferred();
  const registry = createRegistry();
  registry.register("wait", { task: "required" }, async (_, { status, signal }) => {
    signal.addEventListener("abort", () => aborted++);
    await status("waiting");
    await go.promise;
    return "waited";
  });
  registry.register("ask", { task: "required" }, async (_, { askNow }) => {
    const form = elicit("Your name?", { name: { type: "string" } }, ["name"]);
    return `It was ${(await askNow({ name: form })).elicited("name")?.action}`;
  });
  http = await listenHttp(createServer(registry, { name: "tasks", version: "1.0.0" }), { port: 0 });
});
afterAll(() => http.close());

const at = (): readonly string[] => ["--server", http.url];

async function detach(tool: string): Promise<string> {
  const { code, stdout } = await junctor(["call", tool, "--detach", ...at()]);
  expect(code).toBe(0);
  const [, ref = ""] = /^junctor task (\S+) --server http:\S+\n$/.exec(stdout) ?? [];
  expect(ref).not.toBe("");
  return ref;
}

describe("tasks on the command line", () => {
  test("a task is left, looked at, cancelled and waited for", async () => {
    const ref = await detach("wait");
    const looked = await junctor(["task", ref, "--status", ...at()]);
    expect(looked).toEqual({ code: 0, stdout: "working: waiting\n", stderr: "" });
    expect(await junctor(["task", ref, "--cancel", ...at()])).toMatchObject({ code: 0 });
    expect(aborted).toBe(1);
    const cancelled = await junctor(["task", ref, ...at()]);
    expect(cancelled.code).toBe(3);
    expect(cancelled.stderr).toContain("The task was cancelled");
    const unknown = await junctor(["task", "v1.none", ...at()]);
    expect(unknown.stderr).toContain("Unknown task");
    expect((await junctor(["task"])).code).toBe(2);
  });

  test("a call waits for its task and has its questions answered", async () => {
    const { code, stdout, stderr } = await junctor(["call", "ask", ...at()]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "It was decline\n" });
    expect(stderr).toContain("there is no terminal to ask on");
  });

  test("a signal cancels the task where there is no terminal to ask on", async () => {
    const before = aborted;
    let isSent = false;
    const { code, stderr } = await junctor(["call", "wait", ...at()], {
      onOutput: (output, child) => {
        // Once: a second one ends the command where it stands.
        if (output.includes("waiting") && !isSent) isSent = child.kill("SIGINT");
      },
    });
    expect(code).toBe(130);
    expect(stderr).toContain("The task was cancelled.");
    expect(aborted).toBe(before + 1);
  });

  const hasScript = spawnSync("script", ["--version"]).status === 0;
  test.skipIf(!hasScript)("Ctrl-C offers to leave the task running, and says how to come back", async () => {
    const before = aborted;
    const keys = [
      ["[working] waiting", "\u0003"],
      ["Leave the task running?", "yes\n"],
    ] as const;
    let next = 0;
    const { code, stdout } = await junctorOnTerminal(["call", "wait", ...at()], {
      columns: 1000,
      onOutput: (output, child) => {
        const step = keys[next];
        if (step === undefined || !output.includes(step[0])) return;
        next++;
        child.stdin?.write(step[1]);
      },
    });
    expect(code).toBe(130);
    const [, ref = ""] = /junctor task (\S+) --server/.exec(stdout) ?? [];
    expect(aborted).toBe(before);
    const waiting = junctor(["task", ref, ...at()]);
    go.resolve();
    expect(await waiting).toMatchObject({ code: 0, stdout: "waited\n" });
  });
});
