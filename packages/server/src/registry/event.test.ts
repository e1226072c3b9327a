import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { createDeferred } from "../../../core/src/async/queue.ts";
import type { Content } from "../../../core/src/mcp/types.ts";
import { audio, embedResource, image, resourceLink, text } from "../../../core/src/provider/content.ts";
import type { CallEvent } from "../../../core/src/provider/context.ts";
import { drainEvents, type HandlerResult, type StreamEnd, type ToolEvent } from "./event.ts";

type Events = AsyncGenerator<ToolEvent, HandlerResult>;

const never = new AbortController().signal;

async function drain(events: () => Events): Promise<{ emitted: CallEvent[]; end: StreamEnd }> {
  const emitted: CallEvent[] = [];
  const emit = async (event: CallEvent): Promise<void> => void emitted.push(event);
  return { end: await drainEvents(events(), emit, never), emitted };
}

async function* yielding(...events: readonly ToolEvent[]): Events {
  yield* events;
}

describe("a generator that yields", () => {
  test("text has it told at once and collected as one text", async () => {
    const { emitted, end } = await drain(() => yielding("Hel", { type: "content", content: "lo" }));
    expect(emitted).toEqual([
      { kind: "progress", message: "Hel" },
      { kind: "progress", message: "lo" },
    ]);
    expect(end).toEqual({ kind: "returned", value: undefined, streamed: [text("Hello")] });
  });

  test.each<[Content, string]>([
    [text("a"), "a"],
    [image("", "image/png"), "[image, image/png]"],
    [audio("", "audio/wav"), "[audio, audio/wav]"],
    [resourceLink({ uri: "a:b", name: "n" }), "[n](a:b)"],
    [resourceLink({ uri: "a:b", name: "n", title: "t" }), "[t](a:b)"],
    [embedResource("a:b", "c"), "[resource a:b]"],
  ])("the block %j has it collected, and told in words", async (content, message) => {
    const { emitted, end } = await drain(() => yielding({ type: "content", content }));
    expect(emitted).toEqual([{ kind: "progress", message }]);
    expect(end).toMatchObject({ streamed: [content] });
  });

  test("text around other blocks, or with notes of its own, keeps it apart", async () => {
    const noted = { ...text("b"), annotations: { priority: 1 } };
    const tagged = { ...text("c"), _meta: { a: 1 } };
    const blocks = [text("a"), noted, tagged, image("", "image/png"), text("d")];
    const { end } = await drain(() =>
      yielding(...blocks.map((content) => ({ type: "content", content }) as const)),
    );
    expect(end).toMatchObject({ streamed: blocks });
  });

  test("toolUse, progress and log has them told and not kept", async () => {
    const { emitted, end } = await drain(() =>
      yielding(
        { type: "toolUse", name: "grep" },
        { type: "progress", progress: 1, total: 2, message: "half" },
        { type: "progress", progress: 2 },
        { type: "log", level: "warning", data: { a: 1 }, logger: "me" },
      ),
    );
    expect(emitted).toEqual([
      { kind: "progress", message: "Using tool: grep" },
      { kind: "progress", progress: 1, total: 2, message: "half" },
      { kind: "progress", progress: 2 },
      { kind: "log", level: "warning", data: { a: 1 }, logger: "me" },
    ]);
    expect(end).toEqual({ kind: "returned", value: undefined, streamed: [] });
  });

  test("error has the call fail there, and runs finally", async () => {
    const ran: string[] = [];
    const { end } = await drain(async function* () {
      try {
        yield "so far";
        yield { type: "error", message: "no further" };
        ran.push("after");
      } finally {
        ran.push("finally");
      }
    });
    expect(end).toEqual({ kind: "failed", message: "no further" });
    expect(ran).toEqual(["finally"]);
  });

  test("complete has the call end there with what was streamed, and runs finally", async () => {
    const ran: string[] = [];
    const { end } = await drain(async function* () {
      try {
        yield "all";
        yield { type: "complete" };
        ran.push("after");
      } finally {
        ran.push("finally");
      }
    });
    expect(end).toEqual({ kind: "returned", value: undefined, streamed: [text("all")] });
    expect(ran).toEqual(["finally"]);
  });

  test("and returns a value has both", async () => {
    const { end } = await drain(async function* () {
      yield "part";
      return { total: 3 };
    });
    expect(end).toEqual({ kind: "returned", value: { total: 3 }, streamed: [text("part")] });
  });

  test.each([1, {}, { type: "text", text: "a block is not an event" }])(
    "%j, which is not an event, has it end with an error that says so",
    async (value) => {
      const drained = drain(() => yielding(value as unknown as ToolEvent));
      await expect(drained).rejects.toThrow(/^A streaming tool yielded .*, which is not an event; \S+/);
    },
  );

  test.each<[event: object, sentence: string]>([
    [
      { type: "progress", progress: 1, totl: 2 },
      'of type "progress" with the member "totl", which it does not have; did you mean "total"?',
    ],
    [
      { type: "error", msg: "x" },
      'with the member "msg", which it does not have; its members are type, message',
    ],
    [{ type: "error" }, 'whose "message" is missing; it must be a string'],
    [
      { type: "content", content: { type: "txt" } },
      'whose "content" is object; it must be a string or a content',
    ],
    [{ type: "toolUse", tool: "x" }, 'with the member "tool", which it does not have'],
    [{ type: "toolUse" }, 'whose "name" is missing; it must be a string'],
    [
      { type: "log", level: "warn", data: 1 },
      'whose "level" is string "warn"; it must be one of debug, info',
    ],
    [{ type: "log", level: "info" }, 'whose "data" is missing'],
    [{ type: "progress", progress: "1" }, 'whose "progress" is string "1"; it must be a number'],
    [{ type: "complete", value: 1 }, 'with the member "value", which it does not have; its members are type'],
    [{ type: "toString" }, 'an event of type "toString", which is not an event'],
  ])("%j, a badly shaped event, has it end with an error that says so", async (event, sentence) => {
    const drained = drain(() => yielding("part", event as ToolEvent));
    await expect(drained).rejects.toThrow(sentence);
  });

  test("a member that is undefined has it ignored", async () => {
    const event = { type: "progress", progress: 1, total: undefined } as unknown as ToolEvent;
    const { emitted } = await drain(() => yielding(event));
    expect(emitted).toEqual([{ kind: "progress", progress: 1 }]);
  });

  test("and throws has its error passed on", async () => {
    const error = new Error("boom");
    const drained = drain(async function* () {
      yield "part";
      throw error;
    });
    await expect(drained).rejects.toBe(error);
  });
});

describe("backpressure", () => {
  test("a generator does not run ahead of the transport", async () => {
    const ran: string[] = [];
    const taken = [createDeferred<void>(), createDeferred<void>()];
    const emitted: CallEvent[] = [];
    async function* events(): Events {
      ran.push("first");
      yield "1";
      ran.push("second");
      yield "2";
      ran.push("end");
    }
    const emit = (event: CallEvent): Promise<void> => {
      emitted.push(event);
      return taken[emitted.length - 1]!.promise;
    };
    const end = drainEvents(events(), emit, never);
    await expect.poll(() => emitted.length).toBe(1);
    expect(ran).toEqual(["first"]);
    taken[0]!.resolve();
    await expect.poll(() => emitted.length).toBe(2);
    expect(ran).toEqual(["first", "second"]);
    taken[1]!.resolve();
    await end;
    expect(ran).toEqual(["first", "second", "end"]);
  });

  test("a transport that fails ends the generator, and its finally runs", async () => {
    const ran: string[] = [];
    async function* events(): Events {
      try {
        yield "1";
      } finally {
        ran.push("finally");
      }
    }
    const gone = new Error("gone");
    await expect(drainEvents(events(), () => Promise.reject(gone), never)).rejects.toBe(gone);
    expect(ran).toEqual(["finally"]);
  });
});

describe("an abort", () => {
  test("ends the generator at its next event, and its finally runs", async () => {
    const ran: string[] = [];
    const controller = new AbortController();
    async function* events(): Events {
      try {
        for (let count = 0; ; count++) {
          ran.push(`${count}`);
          if (count === 2) controller.abort(new Error("enough"));
          yield `${count}`;
        }
      } finally {
        ran.push("finally");
      }
    }
    await expect(drainEvents(events(), async () => {}, controller.signal)).rejects.toThrow("enough");
    expect(ran).toEqual(["0", "1", "2", "finally"]);
  });

  test("ends a generator that never waits and whose events are taken at once", async () => {
    const stopping = new AbortController();
    setImmediate(() => stopping.abort(new Error("gone")));
    const endless = function* (): Generator<string, void> {
      for (;;) yield "more";
    };
    await expect(drainEvents(endless(), async () => {}, stopping.signal)).rejects.toThrow("gone");
  });

  test("does not wait for a transport that is stuck", async () => {
    const controller = new AbortController();
    const ran: string[] = [];
    async function* events(): Events {
      try {
        yield "1";
      } finally {
        ran.push("finally");
      }
    }
    const stuck = createDeferred<void>();
    const emit = (): Promise<void> => {
      queueMicrotask(() => controller.abort(new Error("enough")));
      return stuck.promise;
    };
    await expect(drainEvents(events(), emit, controller.signal)).rejects.toThrow("enough");
    expect(ran).toEqual(["finally"]);
  });

  test("that came before the first event keeps the generator from starting", async () => {
    const ran: string[] = [];
    async function* events(): Events {
      ran.push("started");
      yield "1";
    }
    const drained = drainEvents(events(), async () => {}, AbortSignal.abort(new Error("too late")));
    await expect(drained).rejects.toThrow("too late");
    expect(ran).toEqual([]);
  });

  test("leaves no listener behind when the call ends", async () => {
    const { signal } = new AbortController();
    const during: number[] = [];
    const emit = async (): Promise<void> => void during.push(getEventListeners(signal, "abort").length);
    await drainEvents(yielding("1", "2", "3"), emit, signal);
    expect(during).toEqual([1, 1, 1]);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

test("a generator that is not async streams like one that is, and cleans up when the caller is gone", async () => {
  const controller = new AbortController();
  let isCleanedUp = false;
  function* events(): Generator<ToolEvent, void> {
    try {
      yield "one";
      yield { type: "progress", progress: 1 };
      controller.abort(new Error("enough"));
      yield "never seen";
    } finally {
      isCleanedUp = true;
    }
  }
  const emitted: CallEvent[] = [];
  const emit = async (event: CallEvent): Promise<void> => void emitted.push(event);
  await expect(drainEvents(events(), emit, controller.signal)).rejects.toThrow("enough");
  expect(emitted).toEqual([
    { kind: "progress", message: "one" },
    { kind: "progress", progress: 1 },
  ]);
  expect(isCleanedUp).toBe(true);
});
