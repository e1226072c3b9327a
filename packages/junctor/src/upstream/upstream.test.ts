import { describe, expect, test } from "vitest";
import {
  createFakeOpener,
  type FakeAnswers,
  type FakeOpener,
  legacyAgreement,
  turn,
} from "../../../../test/support/fake-client.ts";
import { toServerConfig, toTools } from "../../../../test/support/fake-source.ts";
import type { ConnectOptions } from "../../../client/src/client/connect.ts";
import { createDeferred, type Deferred } from "../../../core/src/async/queue.ts";
import { ClosedError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import type { ClientCapabilities } from "../../../core/src/mcp/types.ts";
import { type CallContext, createCallContext } from "../../../core/src/provider/context.ts";
import { createOperation } from "../../../core/src/provider/operation.ts";
import type { Outcome } from "../../../core/src/provider/provider.ts";
import { Parking } from "../bridge/parking.ts";
import type { ServerConfig } from "../config/config.ts";
import { createVirtualClock, type VirtualClock } from "../testing/virtual-clock.ts";
import { Upstream } from "./upstream.ts";

const overHttp = {
  launch: { kind: "http", url: "http://127.0.0.1/mcp", headers: {}, transport: "auto" },
} as const;
const everything = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };
const legacy = { revision: "2025-11-25", ask: () => new Promise<RawJson>(() => {}) } as const;
const gone = new ClosedError("outcome_unknown", "it is gone");

interface Made {
  readonly upstream: Upstream;
  readonly clock: VirtualClock;
  readonly opener: FakeOpener;
  /** What was declared on each connection that was opened. */
  readonly relays: ClientCapabilities[];
  /** Calls that are underway, and by which connection. */
  readonly calls: { readonly connection: number; readonly answer: Deferred<Outcome> }[];
  /** Lets the connection opened last come up. */
  readonly comeUp: (answers?: FakeAnswers) => Promise<void>;
  readonly call: (context?: Partial<CallContext>) => Promise<Outcome>;
}

function make(config: Partial<ServerConfig> = {}): Made {
  const clock = createVirtualClock(1_000_000);
  const opener = createFakeOpener();
  const relays: ClientCapabilities[] = [];
  const calls: { connection: number; answer: Deferred<Outcome> }[] = [];
  const upstream = new Upstream({
    config: toServerConfig("files", config),
    connect: async ({
      relays: { capabilities: declared } = { capabilities: {}, server: "" },
      signal,
      onLost,
      onOpen,
    }: ConnectOptions) => {
      const connection = relays.push(declared) - 1;
      const client = await opener.open({
        signal: signal ?? new AbortController().signal,
        onLost: onLost as (reason: Error) => void,
        onOpen: onOpen ?? (() => {}),
        onSpawned: () => {},
        timeouts: 0,
      });
      const close = client.close.bind(client);
      const open = new Set<Deferred<Outcome>>();
      const end = async (): Promise<void> => {
        for (const answer of open) answer.reject(gone);
        await close();
      };
      return Object.assign(client, {
        call: () => {
          const answer = createDeferred<Outcome>();
          open.add(answer);
          calls.push({ connection, answer });
          return answer.promise;
        },
        close: end,
        [Symbol.asyncDispose]: end,
      });
    },
    parking: new Parking({ clock }),
    clock,
    report: () => {},
  });
  return {
    upstream,
    clock,
    opener,
    relays,
    calls,
    comeUp: async (answers = { tools: () => Promise.resolve(toTools("x")) }) => {
      await turn();
      opener.last.succeed(answers);
      await turn();
    },
    call: async (context = {}) =>
      upstream.call(createOperation("tools/call", "x"), createCallContext(context)),
  };
}

const done: Outcome = { kind: "complete", result: RawJson.fromText("{}") };

describe("calls", () => {
  test("share one connection, and the first starts it", async () => {
    const made = make();
    const all = [made.call(), made.call(), made.call()];
    await made.comeUp();
    expect(made.calls.map(({ connection }) => connection)).toEqual([0, 0, 0]);
    expect(made.upstream.inFlight).toBe(3);
    for (const { answer } of made.calls) answer.resolve(done);
    await Promise.all(all);
    expect(made.upstream.inFlight).toBe(0);
  });

  test("of all callers share one process, to which everything that can be asked is declared", async () => {
    const made = make();
    void made.upstream.start();
    await made.comeUp();
    const all = [
      made.call({ ...legacy, session: {}, capabilities: { roots: {} } }),
      made.call({ ...legacy, session: {}, capabilities: { elicitation: {} } }),
      made.call({ capabilities: { sampling: {} } }),
      made.call(),
    ];
    await turn();
    expect(made.calls.map(({ connection }) => connection)).toEqual([0, 0, 0, 0]);
    expect(made.relays).toEqual([everything]);
    for (const { answer } of made.calls) answer.resolve(done);
    await Promise.all(all);
  });

  test("are spread over several processes where the config says so, and a session stays with one", async () => {
    const made = make({ instances: 2 });
    void made.upstream.start();
    await made.comeUp();
    const [one, two] = [{}, {}];
    const all = [one, two, one, two].map((session) => made.call({ session }));
    await turn();
    for (const opening of made.opener.openings) if (!opening.isSettled) opening.succeed();
    await turn();
    expect(made.relays).toEqual([everything, everything]);
    expect(made.calls.map(({ connection }) => `${connection}`).toSorted()).toEqual(["0", "0", "1", "1"]);
    expect(made.upstream.connections.map(({ reason }) => reason)).toEqual([
      "for all callers",
      "process 2 for all callers",
    ]);
    for (const { answer } of made.calls) answer.resolve(done);
    await Promise.all(all);
  });

  test("to a process that does not know the era it was asked for go by it all the same", async () => {
    const made = make({ era: "legacy" });
    void made.upstream.start();
    const agreement = { ...legacyAgreement, mode: { kind: "modern", revision: "2026-07-28" } } as const;
    await made.comeUp({ agreement: () => Promise.resolve(agreement) });
    const call = made.call({ ...legacy, capabilities: { roots: {} } });
    await turn();
    made.calls[0]?.answer.resolve(done);
    await expect(call).resolves.toBe(done);
    expect(made.relays).toHaveLength(1);
  });

  test("to a legacy server over HTTP go by a conversation that declares what their callers offer", async () => {
    const made = make(overHttp);
    void made.upstream.start();
    await made.comeUp();
    const call = made.call({ ...legacy, capabilities: { roots: {} } });
    await made.comeUp();
    expect(made.relays).toEqual([{}, { roots: {} }]);
    made.calls[0]?.answer.resolve(done);
    await expect(call).resolves.toBe(done);
  });

  test("that are to be alone each have a connection, up to the limit, and wait at it", async () => {
    const made = make({ sharing: "exclusive", maxConnections: 2 });
    void made.upstream.start();
    await made.comeUp();
    const all = [made.call(), made.call(), made.call()];
    await turn();
    for (const opening of made.opener.openings) if (!opening.isSettled) opening.succeed();
    await turn();
    expect(made.calls.map(({ connection }) => connection)).toEqual([1, 2]);
    made.calls[0]?.answer.resolve(done);
    await turn();
    expect(made.calls.map(({ connection }) => connection)).toEqual([1, 2, 1]);
    for (const { answer } of made.calls) answer.resolve(done);
    await Promise.all(all);
  });

  test("of each session have a connection of their own where that is wanted", async () => {
    const made = make({ sharing: "perSession" });
    void made.upstream.start();
    await made.comeUp();
    const [one, two] = [{}, {}];
    const all = [made.call({ session: one }), made.call({ session: two }), made.call({ session: one })];
    await turn();
    for (const opening of made.opener.openings) if (!opening.isSettled) opening.succeed();
    await turn();
    expect(made.calls.map(({ connection }) => `${connection}`).toSorted()).toEqual(["1", "1", "2"]);
    for (const { answer } of made.calls) answer.resolve(done);
    await Promise.all(all);
  });

  test("that a server dies in fail at once, and say that nobody knows what became of them", async () => {
    const made = make();
    const call = made.call();
    await made.comeUp();
    const failed = call.catch((error: unknown) => error);
    made.opener.last.lose(gone);
    expect(await failed).toMatchObject({ code: "upstream.lost", delivery: "outcome_unknown" });
    expect(made.upstream.inFlight).toBe(0);
  });

  test("of ever new sessions do not start a server that does not last again and again", async () => {
    const made = make({ sharing: "perSession" });
    void made.upstream.start();
    await made.comeUp();
    const crash = async (): Promise<unknown> => {
      const failed = made.call({ session: {} }).catch((error: unknown) => error);
      await turn();
      if (!made.opener.last.isSettled) {
        made.opener.last.succeed();
        await turn();
        made.opener.last.lose(gone);
      }
      return failed;
    };
    for (let session = 0; session < 12; session++)
      expect(await crash()).toMatchObject({ code: "upstream.lost" });
    for (let session = 0; session < 20; session++) {
      const refused = await crash();
      expect(refused).toMatchObject({ code: "upstream.unavailable", delivery: "not_sent" });
      expect(String(refused)).toMatch(/: it ended; it failed too often, and it is tried again in \d+ s/);
    }
    expect(made.opener.openings).toHaveLength(1 + 12);
    // What everybody shares goes on, and a minute later it is tried again.
    expect(made.upstream.health.kind).toBe("up");
    await made.clock.advance(60_000);
    expect(await crash()).toMatchObject({ code: "upstream.lost" });
  });

  test("of ever new sessions wait for nobody while what is started stays up", async () => {
    const made = make({ sharing: "perSession" });
    void made.upstream.start();
    await made.comeUp();
    for (let count = 0; count < 50; count++) {
      const session = {};
      const call = made.call({ session });
      await made.comeUp();
      made.calls.at(-1)?.answer.resolve(done);
      expect(await call).toBe(done);
      made.upstream.pool.sessionEnded(session);
    }
    expect(made.opener.openings).toHaveLength(1 + 50);
  });

  test("to a server that cannot be started fail at once, and were not sent", async () => {
    const made = make();
    const call = made.call();
    await turn();
    made.opener.last.fail(new Error("no"));
    await expect(call).rejects.toMatchObject({ code: "upstream.unavailable", delivery: "not_sent" });
  });
});

describe("a lazy server", () => {
  test("rests when nobody called for a while, and its lists stay", async () => {
    const made = make({ start: "lazy", idleStopMs: 1000 });
    const call = made.call();
    await made.comeUp();
    await made.clock.advance(5000);
    expect(made.upstream.health.kind).toBe("up");
    made.calls[0]?.answer.resolve(done);
    await call;
    await made.clock.advance(1000);
    expect(made.upstream.health.kind).toBe("idle");
    expect(made.opener.alive).toBe(0);
    expect(made.upstream.listedFor().tools).toHaveLength(1);
    expect(made.clock.sleeping).toBe(0);
  });

  test("is started by the first look at its lists, and not by a look after it rested", async () => {
    const made = make({ start: "lazy", idleStopMs: 1000 });
    expect(made.upstream.beginListing(createCallContext(), "tools")).toBeInstanceOf(Promise);
    await made.comeUp();
    await made.clock.advance(1000);
    expect(made.upstream.health.kind).toBe("idle");
    expect(made.upstream.beginListing(createCallContext(), "tools")).toBeUndefined();
    await turn();
    expect(made.opener.openings).toHaveLength(1);
    await made.upstream[Symbol.asyncDispose]();
  });

  test("rests some time after nobody watches it any more", async () => {
    const made = make({ start: "lazy", idleStopMs: 1000 });
    void made.upstream.start();
    await made.comeUp({ watch: () => Promise.resolve(() => {}) });
    const stop = await made.upstream.watch(
      { part: "resources", name: "x:1", ref: undefined },
      createCallContext(),
      () => {},
    );
    await made.clock.advance(5000);
    expect(made.upstream.health.kind).toBe("up");
    stop();
    await made.clock.advance(5000);
    expect(made.upstream.health.kind).toBe("idle");
  });
});

describe("looking", () => {
  const capabilities = { elicitation: { form: {} } };

  test("for callers of a new kind waits for their first list", async () => {
    const made = make(overHttp);
    void made.upstream.start();
    await made.comeUp();
    const beginListing = made.upstream.beginListing(createCallContext({ ...legacy, capabilities }), "tools");
    expect(beginListing).toBeInstanceOf(Promise);
    await made.comeUp({ tools: () => Promise.resolve(toTools("x", "asks")) });
    await beginListing;
    expect(made.upstream.listedFor(createCallContext({ ...legacy, capabilities })).tools).toHaveLength(2);
    expect(made.upstream.listedFor().tools).toHaveLength(1);
    expect(
      made.upstream.beginListing(createCallContext({ ...legacy, capabilities }), "tools"),
    ).toBeUndefined();
  });

  test("for callers of a new kind whose lists fail shows what is there for everybody", async () => {
    const made = make(overHttp);
    void made.upstream.start();
    await made.comeUp();
    const beginListing = made.upstream.beginListing(createCallContext({ ...legacy, capabilities }), "tools");
    await made.comeUp({ tools: () => Promise.reject(new Error("no")) });
    await beginListing;
    expect(made.upstream.listedFor(createCallContext({ ...legacy, capabilities })).tools).toHaveLength(1);
  });

  test("is not held up for long by a connection that was stopped", async () => {
    const made = make(overHttp);
    void made.upstream.start();
    await made.comeUp();
    const beginListing = made.upstream.beginListing(createCallContext({ ...legacy, capabilities }), "tools");
    await turn();
    await made.upstream[Symbol.asyncDispose]();
    let isOver = false;
    void beginListing?.then(() => (isOver = true));
    await turn();
    expect(isOver).toBe(true);
  });
});

describe("ending", () => {
  test("lets calls finish first, for as long as it may", async () => {
    const made = make();
    const call = made.call();
    await made.comeUp();
    const retiring = made.upstream.retire(1000);
    await made.clock.advance(500);
    expect(made.upstream.health.kind).toBe("up");
    made.calls[0]?.answer.resolve(done);
    await expect(call).resolves.toBe(done);
    await retiring;
    expect(made.upstream.health.kind).toBe("stopped");
    expect(made.clock.sleeping).toBe(0);
  });

  test("does not wait for calls longer than that", async () => {
    const made = make();
    const failed = made.call().catch((error: unknown) => error);
    await made.comeUp();
    const retiring = made.upstream.retire(1000);
    await made.clock.advance(1000);
    await retiring;
    expect(await failed).toMatchObject({ code: "upstream.lost" });
    expect(made.opener.alive).toBe(0);
    expect(made.clock.sleeping).toBe(0);
  });

  test.each([
    ["a lazy server's call", { idleStopMs: 60_000 }, {}],
    ["a call of a caller that can be asked", overHttp, { ...legacy, capabilities: { roots: {} } }],
    ["a call that is alone", { sharing: "exclusive" }, {}],
  ] as const)("in the middle of %s leaves no timer and no client", async (_, config, context) => {
    const made = make(config);
    void made.upstream.start();
    await made.comeUp();
    const failed = made.call(context).catch((error: unknown) => error);
    await turn();
    if (!made.opener.last.isSettled) await made.comeUp();
    expect(made.calls).toHaveLength(1);
    await made.upstream[Symbol.asyncDispose]();
    expect(await failed).toMatchObject({ code: "upstream.lost" });
    await turn();
    expect(made.opener.alive).toBe(0);
    expect(made.clock.sleeping).toBe(0);
  });
});
