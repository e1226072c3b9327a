import { describe, expect, test } from "vitest";
import { toProvider } from "../../../../test/support/use-provider.ts";
import { TimeoutError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import { elicit } from "../../../core/src/mcp/question.ts";
import { inputRequired } from "../../../core/src/provider/content.ts";
import { type CallContext, type CallEvent, createCallContext } from "../../../core/src/provider/context.ts";
import { type Middleware, withMiddleware } from "../../../core/src/provider/middleware.ts";
import { createOperation } from "../../../core/src/provider/operation.ts";
import type { Operation, Outcome, Provider } from "../../../core/src/provider/provider.ts";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";

const made = createOperation("tools/call", "t");
const done: Outcome = { kind: "complete", result: RawJson.fromText('{"content":[]}') };
const limit = (timeoutMs: number): Middleware => ({ beforeCall: (call) => ({ ...call, timeoutMs }) });

type Work = (operation: Operation, context: CallContext) => ReturnType<Provider["call"]>;

const providing = (work: Work): Provider => toProvider([], work);

/** A signal that counts who listens to it. */
function watchedSignal(): { controller: AbortController; listeners: () => number } {
  const controller = new AbortController();
  const { signal } = controller;
  const listening = new Set<unknown>();
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (type: "abort", listener: () => void, options?: object) => {
    listening.add(listener);
    add(type, listener, options);
  };
  signal.removeEventListener = (type: "abort", listener: () => void) => {
    listening.delete(listener);
    remove(type, listener);
  };
  return { controller, listeners: () => listening.size };
}

describe("a call with a time limit", () => {
  test("is rejected in time though the provider does not heed its signal, and the signal is aborted", async () => {
    const clock = createVirtualClock();
    const { controller, listeners } = watchedSignal();
    let seen: AbortSignal | undefined;
    const deaf = providing((_, { signal }) => {
      seen = signal;
      return new Promise(() => {});
    });
    const provider = withMiddleware(deaf, [limit(100)], { clock });
    const outcome = provider.call(made, createCallContext({ signal: controller.signal })) as Promise<unknown>;
    const ended = outcome.catch((error: unknown) => error);
    expect([clock.sleeping, listeners()]).toEqual([1, 1]);
    await clock.advance(100);
    expect(await ended).toEqual(new TimeoutError("total", 100));
    expect(seen?.reason).toEqual(new TimeoutError("total", 100));
    expect([clock.sleeping, listeners()]).toEqual([0, 0]);
  });

  test.each<[string, () => ReturnType<Provider["call"]>]>([
    ["answers at once", () => done],
    ["answers later", async () => done],
    ["rejects", () => Promise.reject(new Error("no"))],
    [
      "throws",
      () => {
        throw new Error("no");
      },
    ],
  ])("that %s leaves no timer and no listener", async (_, work) => {
    const clock = createVirtualClock();
    const { controller, listeners } = watchedSignal();
    const provider = withMiddleware(providing(work), [limit(100)], { clock });
    const context = createCallContext({ signal: controller.signal });
    await Promise.resolve(provider.call(made, context)).catch(() => {});
    await clock.advance(0);
    expect([clock.sleeping, listeners()]).toEqual([0, 0]);
  });

  test("still answers at once when the provider does", () => {
    expect(
      withMiddleware(
        providing(() => done),
        [limit(100)],
      ).call(made, createCallContext()),
    ).toBe(done);
  });

  test("is given up when its caller gives up, with the caller's reason", async () => {
    const clock = createVirtualClock();
    const { controller, listeners } = watchedSignal();
    let seen: AbortSignal | undefined;
    const deaf = providing((_, { signal }) => ((seen = signal), new Promise(() => {})));
    const provider = withMiddleware(deaf, [limit(100)], { clock });
    const context = createCallContext({ signal: controller.signal });
    const ended = (provider.call(made, context) as Promise<unknown>).catch((error: unknown) => error);
    controller.abort("gone");
    expect([await ended, seen?.reason]).toEqual(["gone", "gone"]);
    expect([clock.sleeping, listeners()]).toEqual([0, 0]);
    const late = provider.call(made, context) as Promise<unknown>;
    await expect(late).rejects.toBe("gone");
    expect([clock.sleeping, listeners()]).toEqual([0, 0]);
  });

  test.each([
    ["outer", [limit(50), limit(100)]],
    ["inner", [limit(100), limit(50)]],
    ["only one that sets any", [limit(50), { beforeCall: ({ name }) => ({ ...made, name }) }, {}]],
  ] satisfies [string, Middleware[]][])("has the smallest limit of all: the %s", async (_, middlewares) => {
    const clock = createVirtualClock();
    const provider = withMiddleware(
      providing(() => new Promise(() => {})),
      middlewares,
      { clock },
    );
    const outcome = provider.call(made, createCallContext()) as Promise<unknown>;
    const ended = outcome.catch((error: unknown) => error);
    await clock.advance(50);
    expect(await ended).toEqual(new TimeoutError("total", 50));
  });

  test("may have one of a year", async () => {
    const clock = createVirtualClock();
    const timers: number[] = [];
    const noting = { ...clock, timer: (ms: number) => (timers.push(ms), () => {}) };
    const provider = withMiddleware(
      providing(async () => done),
      [limit(365 * 86_400_000)],
      { clock: noting },
    );
    expect(await provider.call(made, createCallContext())).toBe(done);
    expect(timers).toEqual([2 ** 31 - 1]);
  });

  test("has no limit that is not a number", async () => {
    const provider = withMiddleware(
      providing(() => done),
      [limit(Number.NaN)],
    );
    await expect(provider.call(made, createCallContext())).rejects.toThrow(RangeError);
  });

  test("has the whole time in each round", async () => {
    const clock = createVirtualClock();
    const asking = providing(async ({ round }) => {
      await new Promise<void>((resolve) => void clock.timer(80, resolve));
      return round === undefined ? inputRequired({ sure: elicit("Sure?", {}) }, 1) : done;
    });
    const provider = withMiddleware(asking, [limit(100)], { clock });
    for (const round of [undefined, { answers: {}, state: 1 }]) {
      const outcome = provider.call({ ...made, round }, createCallContext());
      await clock.advance(80);
      expect(await outcome).toMatchObject({ kind: round === undefined ? "input_required" : "complete" });
    }
    expect(clock.sleeping).toBe(0);
  });

  test.each([0, 40])(
    "is not charged for the time its caller takes to answer, asked after %i ms",
    async (afterMs) => {
      const clock = createVirtualClock();
      const ask = async (): Promise<RawJson> => {
        await new Promise<void>((resolve) => void clock.timer(5000, resolve));
        return RawJson.fromText("{}");
      };
      const asking = providing(async (_, context) => {
        if (afterMs > 0) await new Promise<void>((resolve) => void clock.timer(afterMs, resolve));
        await context.ask?.({ method: "roots/list" }, context.signal);
        return new Promise(() => {});
      });
      const provider = withMiddleware(asking, [limit(100)], { clock });
      let isEnded = false;
      const outcome = provider.call(made, createCallContext({ ask })) as Promise<unknown>;
      const ended = outcome.catch((error: unknown) => ((isEnded = true), error));
      await clock.advance(5000 + 99);
      expect(isEnded).toBe(false);
      await clock.advance(1);
      expect(await ended).toEqual(new TimeoutError("total", 100));
    },
  );
});

describe("what a call emits", () => {
  const progress = (message: string): CallEvent => ({ kind: "progress", message });
  const say = (word: string): Middleware => ({
    beforeCall: (call) => ({
      ...call,
      mapEvent: (event) =>
        event.kind === "progress" ? { ...event, message: `${event.message} ${word}` } : undefined,
    }),
  });
  const emitting = providing(async (_, context) => {
    await context.emit(progress("a"));
    await context.emit({ kind: "log", level: "info", data: "dropped" });
    return done;
  });

  async function heard(provider: Provider): Promise<readonly CallEvent[]> {
    const events: CallEvent[] = [];
    await provider.call(made, createCallContext({ emit: async (event) => void events.push(event) }));
    return events;
  }

  test("is changed or dropped by middleware, the innermost first", async () => {
    expect(await heard(withMiddleware(emitting, [say("outer"), {}, say("inner")]))).toEqual([
      progress("a inner outer"),
    ]);
  });

  test("is not seen by outer ones once it was dropped", async () => {
    const drop: Middleware = { beforeCall: (call) => ({ ...call, mapEvent: () => undefined }) };
    expect(await heard(withMiddleware(emitting, [say("outer"), drop]))).toEqual([]);
  });

  test("is kept back when it cannot be mapped, and whoever does not wait for it does not end the process", async () => {
    const broken: Middleware = {
      beforeCall: (call) => ({
        ...call,
        mapEvent: () => {
          throw new Error("clumsy");
        },
      }),
    };
    const careless = providing(async (_, context) => {
      void context.emit(progress("a"));
      return done;
    });
    expect(await heard(withMiddleware(careless, [broken]))).toEqual([]);
    await expect(heard(withMiddleware(emitting, [broken]))).rejects.toThrow("clumsy");
  });

  test("after its time ran out reaches nobody", async () => {
    const clock = createVirtualClock();
    const events: CallEvent[] = [];
    let emit: CallContext["emit"] | undefined;
    const deaf = providing((_, context) => ((emit = (event) => context.emit(event)), new Promise(() => {})));
    const provider = withMiddleware(deaf, [limit(10)], { clock });
    const context = createCallContext({ emit: async (event) => void events.push(event) });
    const ended = (provider.call(made, context) as Promise<unknown>).catch(() => {});
    await emit?.(progress("in time"));
    await clock.advance(10);
    await ended;
    await emit?.(progress("too late"));
    expect(events).toEqual([progress("in time")]);
  });
});

test("terms are shown to no hook and not to the provider", async () => {
  const seen: object[] = [];
  const watch: Middleware = { beforeCall: (call) => void seen.push(call) };
  const setting: Middleware = {
    beforeCall: (call) => ({ ...call, timeoutMs: 5, mapEvent: (event) => event }),
    afterCall: (call) => void seen.push(call),
  };
  const provider = withMiddleware(
    providing((call) => {
      seen.push(call);
      return done;
    }),
    [setting, watch],
  );
  await provider.call(made, createCallContext());
  expect(seen).toHaveLength(3);
  for (const call of seen) {
    expect(call).toMatchObject({ name: made.name });
    expect(call).not.toHaveProperty("timeoutMs");
    expect(call).not.toHaveProperty("mapEvent");
  }
});
