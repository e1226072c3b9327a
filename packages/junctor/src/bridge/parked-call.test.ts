import { describe, expect, test } from "vitest";
import { createDeferred, type Deferred } from "../../../core/src/async/queue.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import type { Question, ClientCapabilities } from "../../../core/src/mcp/types.ts";
import { type CallContext, type CallEvent, createCallContext } from "../../../core/src/provider/context.ts";
import type { Answers, Outcome } from "../../../core/src/provider/provider.ts";
import { createVirtualClock, type VirtualClock } from "../testing/virtual-clock.ts";
import { ParkedCall } from "./parking.ts";

const everything: ClientCapabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const state = (): string => "state";
const form = (message: string, requestedSchema: object = { type: "object", properties: {} }): Question => ({
  method: "elicitation/create",
  params: { message, requestedSchema },
});
const sampling: Question = { method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } };
const roots: Question = { method: "roots/list" };
const accept = (content: object = {}): RawJson => RawJson.fromValue({ action: "accept", content });
const done = (text: string): Outcome => ({ kind: "complete", result: RawJson.fromValue({ text }) });
const keysOf = (outcome: Outcome): readonly string[] =>
  outcome.kind === "input_required" ? Object.keys(outcome.asks) : [];

/** What the server behind a parked call did, and what it can be made to do. */
interface Behind {
  readonly parked: ParkedCall;
  readonly clock: VirtualClock;
  readonly first: Promise<Outcome>;
  readonly served: CallContext;
  /** Ends the server's call. */
  readonly end: Deferred<Outcome>;
  /** What happened to the server, in order. */
  readonly log: string[];
  ask(ask: Question, signal?: AbortSignal): Promise<RawJson>;
  answer(answers: Answers, context?: Partial<CallContext>): Promise<Outcome>;
}

function begin(context: Partial<CallContext> = {}): Behind {
  const clock = createVirtualClock();
  const parked = new ParkedCall("up", "alice", { clock, gatherMs: 30 });
  const end = createDeferred<Outcome>();
  const log: string[] = [];
  let served: CallContext | undefined;
  const invoke = (inner: CallContext): Promise<Outcome> => {
    served = inner;
    inner.signal.addEventListener("abort", () => {
      log.push("cancelled");
      end.reject(inner.signal.reason);
    });
    return end.promise;
  };
  const first = parked.start(invoke, createCallContext({ capabilities: everything, ...context }), state);
  if (served === undefined) throw new Error("The call was not made.");
  const inner: CallContext = served;
  return {
    parked,
    clock,
    first,
    served: inner,
    end,
    log,
    ask: async (ask, signal = new AbortController().signal) => {
      try {
        const answer = await inner.ask?.(ask, signal);
        log.push(`answered ${answer?.text}`);
        return answer ?? RawJson.fromText("null");
      } catch (error) {
        log.push(`refused ${(error as { rpcCode?: number }).rpcCode ?? String(error)}`);
        throw error;
      }
    },
    answer: (answers, more = {}) =>
      parked.answer(answers, createCallContext({ capabilities: everything, ...more }), state),
  };
}

/** Something whose failure is looked at later, or in the log. */
function quietly(promise: Promise<unknown>): void {
  promise.catch(() => {});
}

describe("a call that asks nothing", () => {
  test("ends as its server ends it", async () => {
    const { first, end, parked } = begin();
    end.resolve(done("at once"));
    await expect(first).resolves.toEqual(done("at once"));
    expect(parked.isOver).toBe(true);
  });

  test("fails as its server fails", async () => {
    const { first, end } = begin();
    end.reject(new Error("out of paper"));
    await expect(first).rejects.toThrow("out of paper");
  });
});

describe("questions", () => {
  test("that come together are asked together, and a later one in the next round", async () => {
    const { first, clock, ask, answer, end, log } = begin();
    const one = ask(form("one"));
    await clock.advance(29);
    const two = ask(roots);
    await clock.advance(1);
    const round = await first;
    expect(round).toMatchObject({
      kind: "input_required",
      asks: { "ask-1": { params: { message: "one" } }, "ask-2": { method: "roots/list" } },
      state: "state",
      keepsAnswers: false,
    });
    const three = ask(sampling);
    await clock.advance(100);
    const again = answer({ "ask-1": accept(), "ask-2": RawJson.fromValue({ roots: [] }) });
    await expect(Promise.all([one, two])).resolves.toHaveLength(2);
    expect(keysOf(await again)).toEqual(["ask-3"]);
    const last = answer({ "ask-3": RawJson.fromValue({ role: "assistant", model: "m", content: {} }) });
    await three;
    end.resolve(done("all"));
    await expect(last).resolves.toEqual(done("all"));
    expect(log).toHaveLength(3);
  });

  test("of a second round wait for company too", async () => {
    const { first, clock, ask, answer } = begin();
    quietly(ask(form("one")));
    await clock.advance(30);
    await first;
    const next = answer({ "ask-1": accept() });
    quietly(ask(form("two")));
    await clock.advance(10);
    quietly(ask(form("three")));
    await clock.advance(20);
    expect(keysOf(await next)).toEqual(["ask-2", "ask-3"]);
  });

  test("that were not all answered are asked again, without those that were", async () => {
    const { first, clock, ask, answer, log } = begin();
    quietly(ask(form("one")));
    quietly(ask(form("two")));
    await clock.advance(30);
    await first;
    expect(keysOf(await answer({ "ask-2": accept({ a: 2 }) }))).toEqual(["ask-1"]);
    expect(keysOf(await answer({}))).toEqual(["ask-1"]);
    expect(keysOf(await answer({ unheardOf: accept() }))).toEqual(["ask-1"]);
    expect(log).toEqual(['answered {"action":"accept","content":{"a":2}}']);
  });

  test("with an answer that does not fit are asked again, and the server hears nothing of it", async () => {
    const { first, clock, ask, answer, log } = begin();
    const schema = { type: "object", properties: { age: { type: "integer" } }, required: ["age"] };
    const one = ask(form("one", schema));
    await clock.advance(30);
    await first;
    expect(keysOf(await answer({ "ask-1": accept({ age: "old" }) }))).toEqual(["ask-1"]);
    expect(log).toEqual([]);
    quietly(answer({ "ask-1": accept({ age: 7 }) }));
    expect((await one).value).toEqual({ action: "accept", content: { age: 7 } });
  });

  test("lose what names them on their own hop", async () => {
    const { first, clock, ask } = begin();
    const params = { mode: "url", message: "Go", url: "https://example.com", elicitationId: "e1" };
    quietly(ask({ method: "elicitation/create", params: { ...params, _meta: { progressToken: 1 } } }));
    await clock.advance(30);
    const round = await first;
    expect(round.kind === "input_required" && round.asks["ask-1"]?.params).toEqual({
      mode: "url",
      message: "Go",
      url: "https://example.com",
    });
  });

  test("that the server takes back are not asked, and the server's side of them ends", async () => {
    const { first, clock, ask, end, log } = begin();
    const taken = new AbortController();
    quietly(ask(form("one"), taken.signal));
    await clock.advance(10);
    taken.abort(new Error("never mind"));
    await clock.advance(20);
    end.resolve(done("without"));
    await expect(first).resolves.toEqual(done("without"));
    expect(log).toEqual(["refused Error: never mind"]);
  });

  test("that were taken back before they were asked are not asked", async () => {
    const { first, clock, ask, end } = begin();
    quietly(ask(form("one"), AbortSignal.abort(new Error("never mind"))));
    await clock.advance(30);
    end.resolve(done("without"));
    await expect(first).resolves.toEqual(done("without"));
  });

  test("that the server takes back while its call is parked do not come up again", async () => {
    const { first, clock, ask, answer, end } = begin();
    const taken = new AbortController();
    quietly(ask(form("one"), taken.signal));
    await clock.advance(30);
    await first;
    taken.abort(new Error("never mind"));
    const next = answer({ "ask-1": accept() });
    end.resolve(done("without"));
    await expect(next).resolves.toEqual(done("without"));
  });
});

describe("a retry that comes twice", () => {
  test("while the first is worked on answers once, and both end alike", async () => {
    const { first, clock, ask, answer, end, log } = begin();
    quietly(ask(form("one")));
    await clock.advance(30);
    await first;
    const retries = [1, 2, 3].map(() => answer({ "ask-1": accept() }));
    await clock.advance(5);
    end.resolve(done("once"));
    await expect(Promise.all(retries)).resolves.toEqual([done("once"), done("once"), done("once")]);
    expect(log).toHaveLength(1);
  });

  test("and meets another question gets that one, however often", async () => {
    const { first, clock, ask, answer, log } = begin();
    quietly(ask(form("one")));
    await clock.advance(30);
    await first;
    const retries = [1, 2].map(() => answer({ "ask-1": accept() }));
    quietly(ask(form("two")));
    await clock.advance(30);
    for (const outcome of await Promise.all(retries)) expect(keysOf(outcome)).toEqual(["ask-2"]);
    expect(keysOf(await answer({ "ask-1": accept({ other: 1 }) }))).toEqual(["ask-2"]);
    expect(log).toEqual(['answered {"action":"accept","content":{}}']);
  });

  test("after the end gets the same end", async () => {
    const { first, clock, ask, answer, end } = begin();
    quietly(ask(form("one")));
    await clock.advance(30);
    await first;
    const retry = answer({ "ask-1": accept() });
    end.reject(new Error("no luck"));
    await expect(retry).rejects.toThrow("no luck");
    await expect(answer({ "ask-1": accept() })).rejects.toThrow("no luck");
  });
});

test("a server that ends its call while nobody waits has its outcome kept, and its question let go", async () => {
  const { first, clock, ask, answer, end, log } = begin();
  const stopped = new AbortController();
  quietly(ask(form("one"), stopped.signal));
  await clock.advance(30);
  await first;
  end.resolve(done("gave up waiting"));
  await clock.advance(1000);
  expect(log).toHaveLength(1);
  await expect(answer({ "ask-1": accept() })).resolves.toEqual(done("gave up waiting"));
});

describe("giving a call up", () => {
  test("answers each kind of question in the way its server knows, and then cancels the call", async () => {
    const { first, clock, ask, parked, log } = begin();
    for (const question of [form("one"), sampling, roots]) quietly(ask(question));
    await clock.advance(30);
    await first;
    await parked.giveUp(new Error("nobody came"));
    await clock.advance(0);
    expect(log).toEqual(['answered {"action":"cancel"}', "refused -1", "refused -32603", "cancelled"]);
  });

  test("is what a caller does that leaves before it was asked anything", async () => {
    const leaving = new AbortController();
    const { first, clock, log } = begin({ signal: leaving.signal });
    quietly(first);
    leaving.abort(new Error("gone"));
    await clock.advance(0);
    await expect(first).rejects.toThrow("gone");
    await clock.advance(0);
    expect(log).toEqual(["cancelled"]);
  });

  test("is what a caller does that leaves while questions are gathered", async () => {
    const leaving = new AbortController();
    const { first, clock, ask, log } = begin({ signal: leaving.signal });
    quietly(first);
    quietly(ask(form("one")));
    await clock.advance(10);
    leaving.abort(new Error("gone"));
    await expect(first).rejects.toThrow("gone");
    await clock.advance(0);
    expect(log).toEqual(['answered {"action":"cancel"}', "cancelled"]);
  });

  test("is not what a caller does that leaves with its questions", async () => {
    const leaving = new AbortController();
    const { first, clock, ask, log } = begin({ signal: leaving.signal });
    quietly(ask(form("one")));
    await clock.advance(30);
    await first;
    leaving.abort(new Error("gone"));
    await clock.advance(1000);
    expect(log).toEqual([]);
  });

  test("does not happen while another retry of the same call waits", async () => {
    const { first, clock, ask, answer, end, log } = begin();
    quietly(ask(form("one")));
    await clock.advance(30);
    await first;
    const leaving = new AbortController();
    const left = answer({ "ask-1": accept() }, { signal: leaving.signal });
    quietly(left);
    const stays = answer({ "ask-1": accept() });
    await clock.advance(0);
    leaving.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    end.resolve(done("for those who stay"));
    await expect(stays).resolves.toEqual(done("for those who stay"));
    expect(log).not.toContain("cancelled");
  });
});

test("a question for what the caller does not offer is refused to the server, which goes on without", async () => {
  const { first, clock, ask, end, log } = begin({ capabilities: { roots: {} } });
  quietly(ask(form("one")));
  await clock.advance(0);
  expect(log).toEqual(["refused -32601"]);
  end.resolve(done("without"));
  await expect(first).resolves.toEqual(done("without"));
});

describe("progress", () => {
  const hearing = (heard: CallEvent[]): Partial<CallContext> => ({
    emit: async (event) => void heard.push(event),
  });

  test("goes to the request that is open, and between rounds to nobody", async () => {
    const before: CallEvent[] = [];
    const after: CallEvent[] = [];
    const { first, clock, ask, answer, end, served } = begin(hearing(before));
    await served.emit({ kind: "progress", progress: 1 });
    quietly(ask(form("one")));
    await clock.advance(30);
    await first;
    await served.emit({ kind: "progress", progress: 2 });
    const retry = answer({ "ask-1": accept() }, hearing(after));
    await served.emit({ kind: "progress", progress: 3 });
    end.resolve(done("well"));
    await retry;
    await served.emit({ kind: "progress", progress: 4 });
    expect(before).toEqual([{ kind: "progress", progress: 1 }]);
    expect(after).toEqual([{ kind: "progress", progress: 3 }]);
  });

  test("of a call two retries wait for goes to the newest", async () => {
    const older: CallEvent[] = [];
    const newer: CallEvent[] = [];
    const { first, clock, ask, answer, served } = begin();
    quietly(ask(form("one")));
    await clock.advance(30);
    await first;
    quietly(answer({ "ask-1": accept() }, hearing(older)));
    quietly(answer({ "ask-1": accept() }, hearing(newer)));
    await served.emit({ kind: "progress", progress: 1 });
    expect([older.length, newer.length]).toEqual([0, 1]);
  });
});
