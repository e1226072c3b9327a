import { describe, expect, test } from "vitest";
import { fromSignal } from "../../../core/src/async/deadline.ts";
import type { RpcError, UpstreamError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import type { Question } from "../../../core/src/mcp/types.ts";
import type { AskCaller } from "../../../core/src/provider/context.ts";
import { createVirtualClock, type VirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { QuestionHabits, type OpenCall, QuestionRouter } from "./question-router.ts";

const ask: Question = { method: "roots/list" };

interface Routed {
  readonly clock: VirtualClock;
  readonly habits: QuestionHabits;
  /** Who was asked, in order. */
  readonly asked: string[];
  readonly refused: string[];
  readonly router: QuestionRouter;
  /** The callers whose calls were sent, in order. */
  readonly sent: string[];
  begin(name: string, about?: string, signal?: AbortSignal): OpenCall;
  end(call: OpenCall, isAnswered?: boolean): void;
  attributed(call: OpenCall): void;
  /** The call ends before it is sent. */
  drop(call: OpenCall): void;
  /** Asks, and gives what came of it as text. */
  put(signal?: AbortSignal, question?: Question): Promise<string>;
}

function createRouted(): Routed {
  const clock = createVirtualClock();
  const habits = new QuestionHabits();
  const refused: string[] = [];
  const router = new QuestionRouter({
    server: "up",
    clock,
    habits,
    onRefused: (text) => refused.push(text),
  });
  const asked: string[] = [];
  const sent: string[] = [];
  return {
    clock,
    habits,
    asked,
    refused,
    router,
    sent,
    begin: (name, about = "tool", signal = new AbortController().signal) => {
      const call: OpenCall = {
        about,
        owner: name,
        holder: name,
        ask: async () => {
          asked.push(name);
          return RawJson.fromValue(name);
        },
      };
      const turn = router.enter(call, fromSignal(signal));
      if (turn === undefined) sent.push(name);
      else
        turn.then(
          () => sent.push(name),
          (error: unknown) =>
            sent.push(`${name}: ${(error as { readonly code?: string }).code ?? "gave up"}`),
        );
      return call;
    },
    end: (call, isAnswered = true) => router.leave(call, isAnswered ? "answered" : "given_up"),
    drop: (call) => router.leave(call, "not_sent"),
    attributed: (call) => router.attributed(call),
    put: (signal = new AbortController().signal, question = ask) =>
      router.ask(question, signal).then(
        ({ value }) => String(value),
        (error: unknown) => `refused ${(error as { readonly rpcCode?: number }).rpcCode ?? "withdrawn"}`,
      ),
  };
}

describe("a question", () => {
  test("is for the one call that is underway", async () => {
    const { begin, put, asked } = createRouted();
    begin("alice");
    await expect(put()).resolves.toBe("alice");
    expect(asked).toEqual(["alice"]);
  });

  test("when none is underway is refused, and told", async () => {
    const { begin, end, put, refused } = createRouted();
    end(begin("alice"));
    const form: Question = { method: "elicitation/create", params: { message: "?", requestedSchema: {} } };
    await expect(put(undefined, form)).resolves.toBe("refused -32602");
    expect(refused).toEqual([
      "A question of up was refused: elicitation/create belongs to no call that is underway",
    ]);
  });

  test("for roots when none is underway is refused, and not told: many servers ask it at their start", async () => {
    const { put, refused } = createRouted();
    await expect(put()).resolves.toBe("refused -32602");
    expect(refused).toEqual([]);
  });

  test("waits until one call is left that can have asked it", async () => {
    const { begin, end, put, asked, habits, refused } = createRouted();
    habits.noteQuiet("read");
    const alice = begin("alice", "read");
    const bob = begin("bob", "read");
    begin("carol", "write");
    const question = put();
    end(alice);
    expect(asked).toEqual([]);
    end(bob);
    await expect(question).resolves.toBe("carol");
    expect(refused).toEqual([]);
  });

  test("that stays ambiguous is refused after a minute, and no caller hears it", async () => {
    const { begin, put, asked, clock, habits } = createRouted();
    habits.noteQuiet("tool");
    begin("alice");
    begin("bob");
    const question = put();
    await clock.advance(60_000);
    await expect(question).resolves.toBe("refused -32602");
    expect(asked).toEqual([]);
  });

  test("of each of several calls is refused after 5 s, but for the oldest, which reaches its own caller", async () => {
    const { begin, end, put, asked, clock, habits, refused } = createRouted();
    const calls = ["alice", "bob", "carol"].map((name) => begin(name));
    await clock.advance(2000);
    const [first, ...others] = [put(), put(), put()];
    // Calls that come and go meanwhile delay nothing.
    habits.noteQuiet("read");
    await clock.advance(3000);
    end(begin("dave", "read"));
    await clock.advance(1999);
    expect(refused).toEqual([]);
    await clock.advance(1);
    await expect(Promise.all(others)).resolves.toEqual(["refused -32602", "refused -32602"]);
    expect(asked).toEqual([]);
    expect(refused[0]).toContain("3 calls each wait for the answer to a question");
    // The two that asked the refused ones end.
    end(calls[0]!);
    end(calls[2]!);
    await expect(first).resolves.toBe("bob");
  });

  test("is held on where a call is underway that waits for no answer", async () => {
    const { begin, end, put, asked, clock, habits, refused } = createRouted();
    habits.noteQuiet("read");
    begin("alice", "write");
    const others = [begin("bob", "read"), begin("carol", "read")];
    const questions = [put(), put()];
    await clock.advance(30_000);
    expect(refused).toEqual([]);
    for (const other of others) end(other);
    await expect(Promise.all(questions)).resolves.toEqual(["alice", "alice"]);
    expect(asked).toEqual(["alice", "alice"]);
  });

  test("that the server withdraws is forgotten", async () => {
    const { begin, end, put, asked, habits } = createRouted();
    habits.noteQuiet("tool");
    const alice = begin("alice");
    begin("bob");
    const withdrawing = new AbortController();
    const question = put(withdrawing.signal);
    withdrawing.abort(new Error("withdrawn"));
    await expect(question).resolves.toBe("refused withdrawn");
    end(alice);
    expect(asked).toEqual([]);
  });

  test("that may be that of a call that was given up is refused, for a minute", async () => {
    const { begin, end, put, clock } = createRouted();
    end(begin("alice"), false);
    begin("bob");
    await expect(put()).resolves.toBe("refused -32602");
    await clock.advance(60_000);
    await expect(put()).resolves.toBe("bob");
  });

  test("may reach the caller itself that gave another call up", async () => {
    const { begin, end, put } = createRouted();
    end(begin("alice"), false);
    begin("alice");
    await expect(put()).resolves.toBe("alice");
  });

  test("that is held when one of its calls is given up is refused", async () => {
    const { begin, end, put, habits } = createRouted();
    habits.noteQuiet("read");
    begin("alice", "read");
    const bob = begin("bob", "write");
    const question = put();
    end(bob, false);
    await expect(question).resolves.toBe("refused -32602");
  });

  test("of a call that was given up is not asked in one of the same caller that does not ask", async () => {
    const { begin, end, put, habits } = createRouted();
    habits.noteQuiet("read");
    begin("alice", "read");
    const write = begin("alice", "write");
    const question = put();
    end(write, false);
    await expect(question).resolves.toBe("refused -32602");
    await expect(put()).resolves.toBe("refused -32602");
  });

  test("is asked in a call that is not known to ask where the one that was given up is not either", async () => {
    const { begin, end, put, habits } = createRouted();
    habits.noteQuiet("read");
    end(begin("alice", "read"), false);
    begin("alice", "read");
    await expect(put()).resolves.toBe("alice");
  });

  test("to a caller that can be asked nothing is answered for it", async () => {
    const router = new QuestionRouter({
      server: "up",
      clock: createVirtualClock(),
      onRefused: () => {},
    });
    void router.enter(
      { about: "tool", owner: "alice", ask: undefined },
      fromSignal(new AbortController().signal),
    );
    await expect(router.ask(ask, new AbortController().signal)).rejects.toMatchObject({ rpcCode: -32601 });
  });
});

describe("calls of callers that can be asked nothing", () => {
  const create = () => {
    const habits = new QuestionHabits();
    habits.noteQuiet("read");
    const clock = createVirtualClock();
    const router = new QuestionRouter({ server: "up", clock, habits, onRefused: () => {} });
    const { signal } = new AbortController();
    const put = (): Promise<unknown> =>
      router.ask(ask, signal).then(
        ({ value }) => value,
        (error: unknown) => (error as { readonly rpcCode?: number }).rpcCode,
      );
    const begin = (owner: string): OpenCall => {
      const call: OpenCall = { about: "write", owner, ask: async () => RawJson.fromValue(owner) };
      void router.enter(call, fromSignal(signal));
      return call;
    };
    return { router, put, begin };
  };

  test("are answered for, however many there are", async () => {
    const { router, put } = create();
    router.enterQuietly("read");
    router.enterQuietly("read");
    await expect(put()).resolves.toBe(-32601);
  });

  test("may have asked, until they are over", async () => {
    const { router, put, begin } = create();
    const leave = [router.enterQuietly("read"), router.enterQuietly("read")];
    begin("alice");
    const question = put();
    // A call that began after the question cannot have asked it.
    router.enterQuietly("read");
    for (const each of leave) each?.(false);
    await expect(question).resolves.toBe("alice");
  });

  test("that were given up may still ask, and then no other caller is asked", async () => {
    const { router, put, begin } = create();
    router.enterQuietly("read")?.(true);
    begin("alice");
    await expect(put()).resolves.toBe(-32602);
  });

  test("that were given up while a question was held may have asked it, so no other caller is asked", async () => {
    const { router, put, begin } = create();
    const leave = [router.enterQuietly("read"), router.enterQuietly("read")];
    begin("alice");
    const question = put();
    leave[0]?.(true);
    leave[1]?.(false);
    await expect(question).resolves.toBe(-32602);
  });

  test("take turns with others as long as they may ask", () => {
    const { router } = create();
    expect(router.enterQuietly("write")).toBeUndefined();
  });
});

describe("calls that may ask", () => {
  test("take turns, in the order they came", async () => {
    const { begin, end, sent, habits, clock } = createRouted();
    habits.noteAsked("tool");
    const alice = begin("alice");
    const bob = begin("bob");
    begin("carol");
    expect(sent).toEqual(["alice"]);
    end(alice);
    await clock.advance(20);
    expect(sent).toEqual(["alice", "bob"]);
    end(bob);
    await clock.advance(20);
    expect(sent).toEqual(["alice", "bob", "carol"]);
  });

  test("run beside those that ended without asking before", async () => {
    const { begin, end, sent, clock } = createRouted();
    end(begin("alice", "read"));
    await clock.advance(20);
    begin("bob", "write");
    begin("carol", "read");
    expect(sent).toEqual(["alice", "bob", "carol"]);
  });

  test("are not taken for quiet because one was given up before it was sent", () => {
    const { begin, drop, habits } = createRouted();
    drop(begin("alice"));
    expect(habits.mayAsk("tool")).toBe(true);
  });

  test("take turns by caller, however many calls one of them has waiting", async () => {
    const { begin, end, sent, habits, clock } = createRouted();
    habits.noteAsked("tool");
    const calls = ["alice", "alice", "alice", "bob", "bob", "carol"].map((name) => begin(name));
    const order = [0, 3, 5, 1, 4, 2];
    for (const index of order) {
      end(calls[index]!);
      await clock.advance(20);
    }
    expect(sent).toEqual(["alice", "bob", "carol", "alice", "bob", "alice"]);
  });

  test("of one caller do not take every place in the queue", async () => {
    const { begin, sent, habits, clock } = createRouted();
    habits.noteAsked("tool");
    for (let count = 0; count < 2000; count++) begin("alice");
    begin("bob");
    await clock.advance(0);
    expect(sent.filter((each) => each === "alice: upstream.busy")).toHaveLength(2000 - 801);
    expect(sent).not.toContain("bob: upstream.busy");
  });

  test("wait two seconds at most where the server never asked", async () => {
    const { begin, sent, clock } = createRouted();
    begin("alice");
    begin("bob");
    await clock.advance(1999);
    expect(sent).toEqual(["alice"]);
    await clock.advance(1);
    expect(sent).toEqual(["alice", "bob"]);
  });

  test("need no turns once one of them asked on a stream of its own", async () => {
    const { begin, sent, clock, attributed } = createRouted();
    const alice = begin("alice");
    begin("bob");
    attributed(alice);
    await clock.advance(0);
    begin("carol");
    expect(sent).toEqual(["alice", "bob", "carol"]);
  });

  test("are told after a minute that they were not sent", async () => {
    const { begin, sent, clock, habits } = createRouted();
    habits.noteAsked("tool");
    begin("alice");
    begin("bob");
    await clock.advance(60_000);
    expect(sent).toEqual(["alice", "bob: upstream.busy"]);
  });

  test("that are given up while they wait are not sent", async () => {
    const { begin, end, sent, clock, habits } = createRouted();
    habits.noteAsked("tool");
    const alice = begin("alice");
    const leaving = new AbortController();
    begin("bob", "tool", leaving.signal);
    leaving.abort(new Error("enough"));
    end(alice);
    await clock.advance(0);
    expect(sent).toEqual(["alice", "bob: gave up"]);
  });
});

describe("calls beside one whose caller thinks", () => {
  /** A server that was seen to ask: each number is a call, and how many questions it asked. */
  const createSeen = async (...questions: readonly number[]) => {
    const routed = createRouted();
    const { clock, begin, end, put, asked, sent } = routed;
    for (const count of questions) {
      const call = begin("earlier");
      for (let each = 0; each < count; each++) await put();
      end(call);
      await clock.advance(20);
    }
    asked.length = 0;
    sent.length = 0;
    let answer = (): void => {};
    const thinker: OpenCall = {
      about: "tool",
      owner: "alice",
      holder: "alice",
      ask: () => new Promise((resolve) => (answer = () => resolve(RawJson.fromValue("alice")))),
    };
    void routed.router.enter(thinker, fromSignal(new AbortController().signal));
    const question = put();
    await clock.advance(0);
    return { ...routed, thinker, question, answer: () => answer() };
  };

  test("begin at once where its tool asks one question in each call, and it may think for as long as it likes", async () => {
    const { clock, begin, end, sent, answer, question } = await createSeen(1);
    for (let minute = 0; minute < 10; minute++) {
      const bob = begin("bob");
      expect(sent).toHaveLength(minute + 1);
      await clock.advance(60_000);
      end(bob);
      await clock.advance(20);
    }
    answer();
    expect(await question).toBe("alice");
  });

  test("ask their own caller once the call of the one that thinks is over", async () => {
    const { clock, begin, end, put, asked, answer, thinker, question } = await createSeen(1);
    begin("bob");
    const own = put();
    await clock.advance(1000);
    expect(asked).toEqual([]);
    answer();
    await question;
    end(thinker);
    expect(await own).toBe("bob");
  });

  test("limit its time once they ask something", async () => {
    const { clock, begin, put, question } = await createSeen(1);
    await clock.advance(60_000);
    begin("bob");
    await clock.advance(60_000);
    void put();
    await clock.advance(1);
    expect(await question).toContain("refused");
  });

  test.each([
    ["nothing is known of its tool", []],
    ["its tool asked twice in a call", [1, 2]],
  ])("wait where %s", async (_, questions) => {
    const { begin, sent } = await createSeen(...questions);
    begin("bob");
    expect(sent).toEqual([]);
  });

  test("wait where any call of the server asked twice at a time", async () => {
    const { habits, begin, sent } = await createSeen(1);
    habits.noteQuestion("other", 2, true);
    begin("bob");
    expect(sent).toEqual([]);
  });
});

describe("a server that asks after the end of a call", () => {
  test("is refused a question that comes right after the result, though another caller's call may begin", async () => {
    const { clock, begin, end, put, asked, sent } = createRouted();
    const alice = begin("alice");
    await put();
    begin("bob");
    end(alice);
    expect(await put()).toBe("refused -32602");
    expect(sent).toEqual(["alice"]);
    await clock.advance(20);
    expect(sent).toEqual(["alice", "bob"]);
    expect(asked).toEqual(["alice"]);
  });

  test("is refused questions in calls of other callers for a minute after each end, once it was seen to", async () => {
    const { clock, begin, end, put, asked, habits } = createRouted();
    habits.noteAskedAfterEnd();
    end(begin("alice"));
    await clock.advance(59_000);
    const bob = begin("bob");
    expect(await put()).toBe("refused -32602");
    await clock.advance(1000);
    expect(await put()).toBe("bob");
    end(bob);
    expect(asked).toEqual(["bob"]);
  });
});

describe("a caller that does not answer", () => {
  type Ending = "at the answer" | "when it is cancelled";

  /** A server whose only tool asks one question, and callers of which some never answer. */
  const create = (ending: Ending = "at the answer", owners: { readonly [name: string]: object } = {}) => {
    const clock = createVirtualClock();
    const habits = new QuestionHabits();
    habits.noteAsked("tool");
    const router = new QuestionRouter({ server: "up", clock, habits, onRefused: () => {} });
    const silent: AskCaller = (_ask, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    /** Makes one call; resolves with its end and how long it took until its caller was asked, or the call was refused. */
    const call = async (
      holder: string,
      isSilent: boolean,
      question: Question = form,
    ): Promise<{ readonly end: string; readonly waitedMs: number }> => {
      const stopping = new AbortController();
      const mine: OpenCall = {
        about: "tool",
        owner: owners[holder] ?? holder,
        holder,
        ask: (asked, signal) => {
          waitedMs = clock.now() - cameAt;
          return isSilent ? silent(asked, signal) : Promise.resolve(RawJson.fromValue("yes"));
        },
        giveUp: (error) => stopping.abort(error),
      };
      let waitedMs = 0;
      const cancelled = new Promise<never>((_resolve, reject) =>
        stopping.signal.addEventListener("abort", () => reject(stopping.signal.reason)),
      );
      cancelled.catch(() => {});
      const cameAt = clock.now();
      try {
        await router.enter(mine, fromSignal(stopping.signal));
      } catch (error) {
        return { end: (error as UpstreamError).code, waitedMs: clock.now() - cameAt };
      }
      const answer = router.ask(question, new AbortController().signal).then(
        ({ value }) => JSON.stringify(value),
        (error: unknown) => `refused ${(error as RpcError).rpcCode}`,
      );
      try {
        const end = await Promise.race([ending === "at the answer" ? answer : cancelled, cancelled]);
        router.leave(mine, "answered");
        return { end, waitedMs };
      } catch (error) {
        router.leave(mine, "given_up");
        return { end: (error as UpstreamError).code, waitedMs };
      }
    };
    return { clock, call };
  };

  const form: Question = { method: "elicitation/create", params: { message: "Sure?", requestedSchema: {} } };
  const closed = JSON.stringify({ action: "cancel" });

  test("keeps others waiting for 30 s once and for 5 s at most after that, through 50 questions", async () => {
    const { clock, call } = create();
    const abandoned = Array.from({ length: 50 }, () => call("alice", true));
    const waits: number[] = [];
    for (let count = 0; count < 50; count++) {
      const bob = call("bob", false);
      await clock.advance(60_000);
      const { end, waitedMs } = await bob;
      expect(end).toBe('"yes"');
      waits.push(waitedMs);
    }
    expect(waits[0]).toBeLessThanOrEqual(30_000);
    expect(waits[0]).toBeGreaterThan(25_000);
    expect(Math.max(...waits.slice(1))).toBeLessThanOrEqual(5000);
    const ends = new Set((await Promise.all(abandoned)).map(({ end }) => end));
    // Those that waited for a minute behind the others of their own caller were not sent.
    expect(ends).toEqual(new Set([closed, "upstream.busy"]));
  });

  test("has as much time as it likes while nobody waits", async () => {
    const { clock, call } = create();
    let isOver = false;
    void call("alice", true).then(() => (isOver = true));
    await clock.advance(5 * 60_000);
    expect(isOver).toBe(false);
    const bob = call("bob", false);
    await clock.advance(1000);
    expect(await bob).toMatchObject({ end: '"yes"' });
  });

  test("has its call given up by a server that does not end it, within the same time", async () => {
    const { clock, call } = create("when it is cancelled");
    let isOver = false;
    const alice = call("alice", true).finally(() => (isOver = true));
    void call("bob", true);
    await clock.advance(29_999);
    expect(isOver).toBe(false);
    await clock.advance(1);
    expect(await alice).toMatchObject({ end: "upstream.abandoned" });
  });

  test("has other questions than forms refused to the server", async () => {
    const { clock, call } = create();
    const alice = call("alice", true, { method: "roots/list" });
    void call("bob", false);
    await clock.advance(30_000);
    expect(await alice).toMatchObject({ end: "refused -32603" });
  });

  test("is trusted again after ten minutes", async () => {
    const { clock, call } = create();
    const waitBehindAlice = async (): Promise<number> => {
      const alice = call("alice", true);
      const bob = call("bob", false);
      await clock.advance(30_000);
      await alice;
      return (await bob).waitedMs;
    };
    // What the call sent last may still be on the way; from the second time on, bob's call has begun by then.
    expect(await waitBehindAlice()).toBe(29_020);
    expect(await waitBehindAlice()).toBe(4000);
    expect(await waitBehindAlice()).toBe(2000);
    await clock.advance(10 * 60_000);
    expect(await waitBehindAlice()).toBe(29_000);
  });

  test("is not hurried by calls of its own session", async () => {
    const { clock, call } = create("at the answer", { alice: {} });
    let isOver = false;
    void call("alice", true).then(() => (isOver = true));
    const second = call("alice", false);
    await clock.advance(60_000);
    expect(isOver).toBe(false);
    expect(await second).toMatchObject({ end: "upstream.busy" });
  });

  test("has the whole time again where only calls under its own name wait", async () => {
    const { clock, call } = create();
    for (let count = 0; count < 3; count++) {
      void call("alice", true);
      const second = call("alice", false);
      await clock.advance(28_999);
      const third = call("alice", false);
      await clock.advance(1);
      expect(await second).toMatchObject({ end: '"yes"', waitedMs: 29_000 });
      expect(await third).toMatchObject({ end: '"yes"' });
    }
  });
});
