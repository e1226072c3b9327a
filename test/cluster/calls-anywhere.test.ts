// What callers do at three replicas behind a balancer without stickiness, and what it costs the engine.
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { HttpWire, legacyCall, modern, modernCall } from "../support/http-wire.ts";
import type { Message } from "../support/raw-http.ts";
import { createToldServer, statefulServer, type ToldServer } from "./support/servers.ts";
import { isSkipped } from "./support/skip.ts";
import { type Stage, type StageConfig, startStage } from "./support/stage.ts";

const keyOf = (name: string): string => `${name}-0123456789-abcdefgh`;
const hashOf = (name: string): string => createHash("sha256").update(keyOf(name)).digest("hex");
const factsOf = ({ result }: Message): { readonly calls: number; readonly pid: number } =>
  result!["structuredContent"] as { readonly calls: number; readonly pid: number };

describe.skipIf(isSkipped)("three replicas behind a balancer", () => {
  let stage: Stage;
  let told: ToldServer;
  let wires: readonly HttpWire[];
  let balanced: HttpWire;

  /** All callers but those that are left out have a key. */
  const toConfig = (...names: readonly string[]): StageConfig => ({
    mcpServers: { up: told.entry, store: statefulServer, own: statefulServer, counted: statefulServer },
    junctor: {
      keys: Object.fromEntries(names.map((name) => [name, { sha256: hashOf(name) }])),
      servers: { own: { sharing: "perSession" } },
      limits: { tools: { counted__echo: { callsPerMinute: 20 } } },
    },
  });
  const wireAt = (
    port: number,
    name = "ada",
    revision: "2026-07-28" | "2025-11-25" = "2026-07-28",
  ): HttpWire => {
    const wire = new HttpWire(port, revision);
    wire.headers["authorization"] = `Bearer ${keyOf(name)}`;
    return wire;
  };

  beforeAll(async () => {
    told = createToldServer("legacy");
    stage = await startStage(toConfig("ada", "bob"));
    wires = stage.replicas.map(({ port }) => wireAt(port));
    balanced = wireAt(stage.balancer.port);
  });
  afterAll(async () => {
    for (const wire of [...(wires ?? []), balanced]) wire?.[Symbol.dispose]();
    await stage?.[Symbol.asyncDispose]();
    told?.[Symbol.dispose]();
  });

  test("a server on stdio is one process in all, and counts the calls of all replicas", async () => {
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => balanced.ask(modernCall("store__count"))),
    );
    const facts = answers.map(factsOf);
    expect(facts.map(({ calls }) => calls).toSorted((one, other) => one - other)).toEqual(
      Array.from({ length: 30 }, (_, index) => index + 1),
    );
    expect(new Set(facts.map(({ pid }) => pid)).size).toBe(1);
  });

  test("calls that are parked come back by any of them: 40 of 40, and each ran once", async () => {
    const client = await connect(`${stage.balancer.url}/mcp`, {
      revision: "2026-07-28",
      headers: { authorization: `Bearer ${keyOf("ada")}` },
      handlers: {
        elicit: ({ message }) => ({ action: "accept", content: { name: `Ada ${String(message)}` } }),
      },
      eras: createEraCache(),
    });
    const nonces = Array.from({ length: 40 }, (_, index) => `parked${index}`);
    const results = await Promise.all(nonces.map((nonce) => client.callTool("up__greet", { nonce })));
    const texts = results.map(({ content }) => (content[0] as { readonly text: string }).text);
    expect(texts).toEqual(nonces.map((nonce) => `Ada ${nonce}`));
    expect(nonces.filter((nonce) => told.count("run", nonce) !== 1)).toEqual([]);
    await client.close();
  });

  test("a listener at one is notified that a list changed at another, and finds what is new", async () => {
    const listen = modern("subscriptions/listen", { notifications: { toolsListChanged: true } }, 7);
    const stream = await wires[0]!.post(listen);
    await wires[1]!.ask(modernCall("store__grow", { name: "grown" }));
    await stream.until("the change came", ({ messages }) =>
      messages.some(({ method }) => method === "notifications/tools/list_changed"),
    );
    for (const wire of wires)
      await expect
        .poll(async () => JSON.stringify((await wire.ask(modern("tools/list"))).result))
        .toContain("store__grown");
  });

  test("a legacy session has a process of its own, which is the same at each", async () => {
    for (const name of ["ada", "bob"]) {
      using wire = wireAt(stage.replicas[0]!.port, name, "2025-11-25");
      await wire.initialize();
      const answers: Message[] = [];
      for (const { port } of stage.replicas) {
        wire.port = port;
        answers.push(await wire.ask(legacyCall(10 + answers.length, "own__count")));
      }
      expect(answers.map((answer) => factsOf(answer).calls)).toEqual([1, 2, 3]);
    }
  });

  test("plain calls make no operation on the engine", async () => {
    const total = async (): Promise<number> =>
      [...(await stage.engine.commands()).values()].reduce((sum, count) => sum + count, 0);
    const before = await total();
    const startedAt = performance.now();
    const calls = 600;
    for (let count = 0; count < calls; count += 20)
      await Promise.all(
        Array.from({ length: 20 }, () => balanced.ask(modernCall("store__echo", { text: "x" }))),
      );
    const seconds = (performance.now() - startedAt) / 1000;
    // Each replica renews its leases every three seconds, by a few commands, whatever is called.
    const background = (seconds / 3 + 2) * 3 * 8;
    expect((await total()) - before).toBeLessThan(background);
    expect(background).toBeLessThan(calls);
  });

  test("a limit is the same however many replicas there are", async () => {
    const startedAt = performance.now();
    let allowed = 0;
    for (let count = 0; count < 60; count++) {
      const { result } = await balanced.ask(modernCall("counted__echo", { text: "x" }));
      if (result?.["isError"] !== true) allowed++;
    }
    const regained = Math.ceil((performance.now() - startedAt) / 3000);
    expect(allowed).toBeLessThanOrEqual(20 + regained);
    expect(allowed).toBeGreaterThanOrEqual(10);
  });

  test("a key that is taken away is refused by all, and ends what is open", async () => {
    const listen = modern("subscriptions/listen", { notifications: { toolsListChanged: true } }, 7);
    const streams: Awaited<ReturnType<HttpWire["post"]>>[] = [];
    const own = stage.replicas.map(({ port }) => wireAt(port, "bob"));
    for (const wire of own) streams.push(await wire.post(listen));
    expect(streams.map(({ status }) => status)).toEqual([200, 200, 200]);
    stage.writeConfig(toConfig("ada"));
    for (const stream of streams)
      await stream.until("the stream ended", (reply) => reply.isComplete || reply.isClosed);
    for (const wire of own) expect((await wire.post(modern("tools/list"))).status).toBe(401);
    for (const wire of own) wire[Symbol.dispose]();
  });
});
