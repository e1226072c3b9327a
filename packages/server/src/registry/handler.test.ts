import { describe, expect, test } from "vitest";
import { ToolError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import { type CallEvent, createCallContext } from "../../../core/src/provider/context.ts";
import { isEventStream, toToolContext } from "./registry.ts";
import { toFailureText } from "./tool-entry.ts";

describe("a handler's context", () => {
  test("says what the call says, and has neither answers nor state on the first round", () => {
    const call = createCallContext({ caller: "ada", clientInfo: { name: "c", version: "1" } });
    const context = toToolContext(undefined, call);
    expect(context).toMatchObject({
      caller: "ada",
      clientInfo: { name: "c", version: "1" },
      state: undefined,
    });
    expect(context.signal).toBe(call.signal);
    expect(context.answers.elicited("x")).toBeUndefined();
  });

  test("has the answers and the state of earlier rounds", () => {
    const round = { answers: { sure: RawJson.fromText('{"action":"accept"}') }, state: { round: 1 } };
    const context = toToolContext(round, createCallContext());
    expect(context.answers.elicited("sure")).toEqual({ action: "accept", content: {} });
    expect(context.state).toEqual({ round: 1 });
  });

  test("emits progress and log entries with what was given and nothing else", async () => {
    const emitted: CallEvent[] = [];
    const call = createCallContext({ emit: async (event) => void emitted.push(event) });
    const { progress, log, emit } = toToolContext(undefined, call);
    await progress(1);
    await progress(2, 4, "half");
    await log("info", { a: 1 });
    await log("error", "bad", "me");
    await emit({ kind: "progress", message: "by hand" });
    expect(emitted).toEqual([
      { kind: "progress", progress: 1 },
      { kind: "progress", progress: 2, total: 4, message: "half" },
      { kind: "log", level: "info", data: { a: 1 } },
      { kind: "log", level: "error", data: "bad", logger: "me" },
      { kind: "progress", message: "by hand" },
    ]);
  });
});

test("only a generator, async or not, is a stream of events", () => {
  async function* later(): AsyncGenerator<string, void> {
    yield "1";
  }
  function* now(): Generator<string, void> {
    yield "1";
  }
  expect(isEventStream(later())).toBe(true);
  expect(isEventStream(now())).toBe(true);
  const others = [undefined, null, "text", [], {}, new Map(), Promise.resolve(), { next: () => {} }];
  for (const other of others) expect(isEventStream(other)).toBe(false);
});

test("the model reads a ToolError, and of any other error only that there was one", () => {
  expect(toFailureText(new ToolError("No such city."), "weather")).toBe("No such city.");
  for (const error of [new Error("password=hunter2"), "password=hunter2", undefined])
    expect(toFailureText(error, "weather")).toBe("The tool weather failed because of an internal error.");
});
