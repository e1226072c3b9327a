import { type ChildProcess, fork } from "node:child_process";
import { getEventListeners, once } from "node:events";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { isAlive } from "../support/processes.ts";

const pathOf = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/children/${name}`, import.meta.url));

/** Longer than any test may take: a call that does not end when its server is gone fails the test. */
const timeoutMs = 600_000;

/** A sequence that is the same every time. */
function createRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** What keeps this process alive, apart from the standard streams and the test runner's own. */
function countResources(): { readonly [kind: string]: number } {
  const counts: { [kind: string]: number } = {};
  for (const kind of process.getActiveResourcesInfo()) {
    if (/TCP|Process|Pipe|Timeout/.test(kind)) counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

interface Ending {
  readonly outcome: string;
  readonly delivery: string | undefined;
}

/** Makes calls, and notes how each ends; none may end twice. */
class Calls {
  readonly endings: Ending[] = [];
  readonly #all: Promise<void>[] = [];

  add(call: Promise<unknown>): void {
    const end = (outcome: string, delivery?: string): void => void this.endings.push({ outcome, delivery });
    this.#all.push(
      call.then(
        () => end("result"),
        (error: unknown) => {
          const { name, delivery } = error as { name: string; delivery?: string };
          end(name, delivery);
        },
      ),
    );
  }

  async all(): Promise<readonly Ending[]> {
    await Promise.all(this.#all);
    return this.endings;
  }
}

const signal = new AbortController().signal;
let before: { readonly [kind: string]: number };
const exitListeners = process.listenerCount("exit");

beforeAll(() => void (before = countResources()));

describe("a child that is killed", () => {
  const stages = ["list", "call", "progress", "half", "answer"] as const;
  const expected: { readonly [stage: string]: readonly [string, string | undefined] } = {
    list: ["ClosedError", "not_sent"],
    call: ["ClosedError", "outcome_unknown"],
    progress: ["ClosedError", "outcome_unknown"],
    half: ["ClosedError", "outcome_unknown"],
    answer: ["result", undefined],
  };

  test("at any stage of a call, 80 times: every call ends once, with the right error", async () => {
    const random = createRandom(4);
    for (let turn = 0; turn < 80; turn++) {
      const stage = stages[random(stages.length)]!;
      const { pid, arrived, client } = await startChild(stage, true);
      const calls = new Calls();
      const count = stage === "list" ? 1 + random(3) : 1;
      for (let call = 0; call < count; call++)
        calls.add(client!.callTool("facts", {}, { signal, timeoutMs, onEvent: () => {} }));
      await arrived;
      if (stage === "answer") await calls.all();
      process.kill(pid(), "SIGKILL");
      expect(await calls.all()).toHaveLength(count);
      for (const { outcome, delivery } of calls.endings)
        expect([stage, outcome, delivery]).toEqual([stage, ...expected[stage]!]);
      await client![Symbol.asyncDispose]();
      expect(isAlive(pid())).toBe(false);
    }
  });

  test("during the probe is started again, and in the handshake ends connecting; 20 times", async () => {
    for (let turn = 0; turn < 10; turn++) {
      const probed = await startChild("probe", false);
      await probed.arrived;
      process.kill(probed.pid(), "SIGKILL");
      const client = await probed.connecting;
      expect((await client.agreement()).mode.kind).toBe("legacy");
      await client[Symbol.asyncDispose]();

      const shaken = await startChild("initialize", false);
      await shaken.arrived;
      const failed = shaken.connecting.catch((error: unknown) => error);
      process.kill(shaken.pid(), "SIGKILL");
      expect(await failed).toMatchObject({ name: "ConnectError", delivery: "not_sent" });
    }
  });
});

/** Starts the fixture; `arrived` resolves when it has come to the stage. */
async function startChild(
  stage: string,
  shouldConnect: boolean,
): Promise<{ pid: () => number; arrived: Promise<void>; client?: Client; connecting: Promise<Client> }> {
  let heard = "";
  let arrive: () => void = () => {};
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  const onStderr = (chunk: Uint8Array): void => {
    heard += Buffer.from(chunk).toString();
    if (heard.includes("at ")) arrive();
  };
  const command = { command: process.execPath, args: [pathOf("server.mjs"), "--pid", `--stop-at=${stage}`] };
  const revision = stage === "probe" ? {} : { revision: "2025-11-25" as const };
  const connecting = connect(command, {
    onStderr,
    eras: createEraCache(),
    connectTimeoutMs: timeoutMs,
    ...revision,
  });
  const pid = (): number => Number(/^pid (\d+)$/m.exec(heard)?.[1]);
  return { pid, arrived, connecting, ...(shouldConnect ? { client: await connecting } : {}) };
}

describe("an HTTP server that is killed", () => {
  let server: ChildProcess;

  const start = async (): Promise<string> => {
    server = fork(pathOf("http-server.mjs"), { stdio: "ignore" });
    const [port] = (await once(server, "message")) as [number];
    return `http://127.0.0.1:${port}/mcp`;
  };
  /** Resolves when the server says that a call has come to its stage. */
  const arrived = async (): Promise<void> => void (await once(server, "message"));

  const stages: readonly [stage: string, delivery: string][] = [
    ["silent", "outcome_unknown"],
    ["headers", "outcome_unknown"],
    ["half", "outcome_unknown"],
    ["progress", "outcome_unknown"],
    ["numbered", "outcome_unknown"],
  ];

  test.each(["2025-11-25", "2026-07-28"] as const)(
    "or cuts the call, at any stage, 50 times in %s: every call ends once, with the right error",
    async (revision) => {
      const random = createRandom(5);
      let url = await start();
      let client = await connect(url, { revision });
      for (let turn = 0; turn < 50; turn++) {
        const [stage, delivery] = stages[random(stages.length)]!;
        const isKilled = turn % 10 === 9;
        const calls = new Calls();
        const waiting = arrived();
        calls.add(client.callTool("stop", { stage }, { signal, timeoutMs, onEvent: () => {} }));
        await waiting;
        if (isKilled) process.kill(server.pid!, "SIGKILL");
        else server.send("cut");
        expect(await calls.all()).toHaveLength(1);
        // Events with numbers are asked for again; whoever is there but lost the call says so.
        for (const { outcome, ...ending } of calls.endings)
          expect([stage, outcome, ending.delivery]).toEqual([stage, "ClosedError", delivery]);
        if (!isKilled) continue;
        await client[Symbol.asyncDispose]();
        url = await start();
        client = await connect(url, { revision });
      }
      await client[Symbol.asyncDispose]();
      const exited = once(server, "exit");
      process.kill(server.pid!, "SIGKILL");
      await exited;
    },
  );
});

test("no process, socket, timer or listener is left of all that", async () => {
  await expect.poll(countResources).toEqual(before);
  expect(getEventListeners(signal, "abort")).toEqual([]);
  expect(process.listenerCount("exit")).toBe(exitListeners);
});
