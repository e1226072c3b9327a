import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { createDeferred } from "../../../core/src/async/queue.ts";
import { NotFoundError, RpcError, ToolError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import { elicit } from "../../../core/src/mcp/question.ts";
import { inputRequired, failure, image, structured, text } from "../../../core/src/provider/content.ts";
import { type CallContext, type CallEvent, createCallContext } from "../../../core/src/provider/context.ts";
import { createOperation } from "../../../core/src/provider/operation.ts";
import type { Round } from "../../../core/src/provider/provider.ts";
import type { HandlerResult, ToolHandler } from "./event.ts";
import { createRegistry, type RegistryOptions } from "./registry.ts";
import type { SchemaSource } from "./schema.ts";
import type { ToolSpec } from "./tool-spec.ts";

interface Case {
  readonly handler: ToolHandler<Record<string, unknown>>;
  readonly spec?: ToolSpec<SchemaSource>;
  readonly options?: RegistryOptions;
  readonly context?: Partial<CallContext>;
  readonly round?: Round;
}

async function run({ handler, spec = {}, options, context, round }: Case): Promise<unknown> {
  const registry = createRegistry(options);
  registry.register("tool", spec, handler as ToolHandler<unknown>);
  const call = createOperation("tools/call", "tool", { round });
  const outcome = await registry.call(call, createCallContext(context));
  return outcome.kind === "complete" ? outcome.result.value : outcome;
}

describe("a handler", () => {
  test.each<[what: string, returned: HandlerResult, result: unknown]>([
    ["a string", "hi", { content: [text("hi")] }],
    ["content", text("hi"), { content: [text("hi")] }],
    [
      "an array of content",
      [text("a"), image("", "image/png")],
      { content: [text("a"), image("", "image/png")] },
    ],
    ["a result", { content: [text("x")], _meta: { a: 1 } }, { content: [text("x")], _meta: { a: 1 } }],
    ["a value", { a: [1] }, structured({ a: [1] })],
    ["a number", 7, structured(7)],
    ["null", null, structured(null)],
    ["nothing", undefined, { content: [] }],
  ])("may return %s, at once or later", async (_, returned, result) => {
    expect(await run({ handler: () => returned })).toEqual(result);
    expect(await run({ handler: async () => returned })).toEqual(result);
    expect(
      await run({
        handler: async function* () {
          yield { type: "progress", progress: 1 };
          return returned;
        },
      }),
    ).toEqual(result);
  });

  test("that streams is told as it goes, and its result is whole", async () => {
    const emitted: CallEvent[] = [];
    const result = await run({
      context: { emit: async (event) => void emitted.push(event) },
      handler: async function* () {
        yield "one ";
        yield { type: "toolUse", name: "grep" };
        yield "two";
        return { count: 2 };
      },
    });
    expect(emitted.map((event) => event.kind === "progress" && event.message)).toEqual([
      "one ",
      "Using tool: grep",
      "two",
    ]);
    expect(result).toEqual({
      content: [text("one two"), text('{"count":2}')],
      structuredContent: { count: 2 },
    });
  });

  test("that streams an error event fails with its message", async () => {
    const handler = async function* () {
      yield "so far";
      yield { type: "error", message: "no further" } as const;
    };
    expect(await run({ handler })).toEqual(failure("no further"));
  });

  test("may ask, and runs again with the answers and its state", async () => {
    const handler: Case["handler"] = (_, { answers, state }) =>
      answers.elicited("name") === undefined
        ? inputRequired({ name: elicit("Name?", {}) }, { step: 1 })
        : `${answers.elicited("name")?.action ?? ""} ${JSON.stringify(state)}`;
    expect(await run({ handler })).toEqual(inputRequired({ name: elicit("Name?", {}) }, { step: 1 }));
    const answers = { name: RawJson.fromText('{"action":"decline"}') };
    expect(await run({ handler, round: { answers, state: { step: 1 } } })).toEqual({
      content: [text('decline {"step":1}')],
    });
  });

  test("that streams may ask too, whatever its output schema", async () => {
    const asked = inputRequired({ name: elicit("Name?", {}) });
    const handler: Case["handler"] = async function* () {
      yield "thinking";
      return asked;
    };
    expect(await run({ handler, spec: { output: { type: "object" } } })).toEqual(asked);
  });
});

describe("a failure", () => {
  const throwing =
    (error: unknown): Case["handler"] =>
    () => {
      throw error;
    };

  test("of a ToolError is told to the model and to nobody else", async () => {
    const onError = vi.fn<NonNullable<RegistryOptions["onError"]>>();
    const error = new ToolError("No city called Pariss.");
    expect(await run({ handler: throwing(error), options: { onError } })).toEqual(failure(error.message));
    expect(onError).not.toHaveBeenCalled();
  });

  class OtherToolError extends Error {
    override readonly name = "ToolError";
  }

  test.each<[string, unknown]>([
    ["an Error", new Error("password=hunter2")],
    ["a TypeError", new TypeError("password=hunter2")],
    ["a string", "password=hunter2"],
    ["nothing", undefined],
    ["a not-found of something inside", new NotFoundError("tool", "inner")],
    ["a ToolError that is not ours", new OtherToolError("password=hunter2")],
  ])("by %s is told without detail, and onError gets everything", async (_, error) => {
    const onError = vi.fn<NonNullable<RegistryOptions["onError"]>>();
    const told = failure("The tool tool failed because of an internal error.");
    const handlers: Case["handler"][] = [
      throwing(error),
      () => Promise.reject(error),
      async function* () {
        yield "part";
        throw error;
      },
    ];
    for (const handler of handlers) expect(await run({ handler, options: { onError } })).toEqual(told);
    expect(onError.mock.calls).toEqual(handlers.map(() => [error, "tool"]));
  });

  test("by a result that has no JSON is the tool's own fault", async () => {
    const onError = vi.fn<NonNullable<RegistryOptions["onError"]>>();
    const result = await run({ handler: () => ({ n: 1n }), options: { onError } });
    expect(result).toMatchObject({ isError: true });
    expect(onError).toHaveBeenCalledWith(expect.any(TypeError), "tool");
  });

  test("by an RpcError is the client's to read", async () => {
    const error = new RpcError("rpc.invalid_params", "no");
    await expect(run({ handler: throwing(error) })).rejects.toBe(error);
  });

  test("to fit its own output schema is a failure that says how", async () => {
    const spec = { output: z.object({ celsius: z.number() }) };
    const onError = vi.fn<NonNullable<RegistryOptions["onError"]>>();
    const options = { onError };
    expect(await run({ handler: () => ({ celsius: 21 }), spec, options })).toEqual(
      structured({ celsius: 21 }),
    );
    expect(onError).not.toHaveBeenCalled();
    const fault = /^The tool's output does not fit its own schema; .*: \/celsius .*number/;
    expect(await run({ handler: () => ({ celsius: "warm" }), spec, options })).toMatchObject({
      isError: true,
      content: [{ type: "text", text: expect.stringMatching(fault) as string }],
    });
    // The author hears of it too: the model cannot mend it.
    expect(onError).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ message: expect.stringMatching(fault) as string }),
      "tool",
    );
    expect(await run({ handler: () => "warm", spec, options })).toMatchObject({ isError: true });
    expect(onError).toHaveBeenCalledTimes(2);
  });

  test("to return content that is content reaches onError with the name of the tool", async () => {
    const onError = vi.fn<NonNullable<RegistryOptions["onError"]>>();
    const handler = (): HandlerResult => ({ content: [{ type: "img", data: "", mimeType: "image/png" }] });
    expect(await run({ handler, options: { onError } })).toEqual(
      failure("The tool tool failed because of an internal error."),
    );
    const message = expect.stringContaining('content[0] is of the unknown type "img"') as string;
    expect(onError).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ message }), "tool");
  });
});

describe("an abort", () => {
  test("reaches the handler's signal, and what it throws then is passed on", async () => {
    const controller = new AbortController();
    const onError = vi.fn<NonNullable<RegistryOptions["onError"]>>();
    const started = createDeferred<void>();
    const running = run({
      context: { signal: controller.signal },
      options: { onError },
      handler: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
          started.resolve();
        }),
    });
    await started.promise;
    const reason = new Error("the caller left");
    controller.abort(reason);
    await expect(running).rejects.toBe(reason);
    expect(onError).not.toHaveBeenCalled();
  });

  test("of a streaming tool runs its finally before the call ends", async () => {
    const controller = new AbortController();
    const ran: string[] = [];
    const running = run({
      context: { signal: controller.signal },
      handler: async function* () {
        try {
          yield "1";
          controller.abort(new Error("the caller left"));
          yield "2";
          ran.push("went on");
        } finally {
          await Promise.resolve();
          ran.push("finally");
        }
      },
    });
    await expect(running).rejects.toThrow("the caller left");
    expect(ran).toEqual(["finally"]);
  });
});
