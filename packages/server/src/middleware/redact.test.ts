import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonText } from "../../../../test/support/arbitrary-json.ts";
import { callTool, toProvider } from "../../../../test/support/use-provider.ts";
import { RpcError, ToolError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import { elicit } from "../../../core/src/mcp/question.ts";
import { inputRequired } from "../../../core/src/provider/content.ts";
import { type CallContext, type CallEvent, createCallContext } from "../../../core/src/provider/context.ts";
import { withMiddleware } from "../../../core/src/provider/middleware.ts";
import type { Outcome } from "../../../core/src/provider/provider.ts";
import { redact, type RedactOptions } from "./redact.ts";

const email: RedactOptions = { patterns: ["email"] };

async function end(
  work: (context: CallContext) => Outcome | Promise<Outcome>,
  options: RedactOptions,
  context: CallContext = createCallContext(),
): Promise<Outcome> {
  const provider = withMiddleware(
    toProvider([], (_, given) => work(given)),
    [redact(options)],
  );
  return callTool(provider, "t", {}, context);
}

/** What a result leaves as, as text. */
async function redacted(result: RawJson, options: RedactOptions = email): Promise<string> {
  const outcome = await end(() => ({ kind: "complete", result }), options);
  return outcome.kind === "complete" ? outcome.result.text : outcome.kind;
}

const raw = (text: string): RawJson => RawJson.parse(Buffer.from(text));

describe("a result", () => {
  test.each([
    [
      '{"content":[{"type":"text","text":"to a@b.de"}]}',
      '{"content":[{"type":"text","text":"to [redacted]"}]}',
    ],
    ['{"content":[],"isError":true,"x":"a@b.de"}', '{"content":[],"isError":true,"x":"[redacted]"}'],
    [
      '{"content":[{"type":"resource","resource":{"uri":"x:y","text":"a@b.de"}}]}',
      '{"content":[{"type":"resource","resource":{"uri":"x:y","text":"[redacted]"}}]}',
    ],
    [
      '{"structuredContent":{"n":12345678901234567890,"z":[1.0,-0],"a@b.de":"a@b.de"}, "e":1e400}',
      '{"structuredContent":{"n":12345678901234567890,"z":[1.0,-0],"[redacted]":"[redacted]"}, "e":1e400}',
    ],
    ['{"x":"a\\u0040b.d\\u0065"}', '{"x":"[redacted]"}'],
    ['{"x":"\\u0061\\n@b"}', '{"x":"\\u0061\\n@b"}'],
  ])("%s leaves as %s", async (text, expected) => {
    expect(await redacted(raw(text))).toBe(expected);
  });

  test("in which nothing matches leaves as the very same bytes", async () => {
    await fc.assert(
      fc.asyncProperty(jsonText(), async (text) => {
        const result = raw(text);
        const outcome = await end(() => ({ kind: "complete", result }), {
          patterns: ["jwt", /no such text/],
        });
        expect(outcome.kind === "complete" && outcome.result).toBe(result);
      }),
    );
  });

  test("is searched by all patterns, in their order", async () => {
    const options: RedactOptions = { patterns: [/secret-(?=\w)/i, "email", /^whole$/] };
    const result = RawJson.fromValue(["Secret-a@b.de secret- SECRET-x", "whole", "not whole"]);
    expect(JSON.parse(await redacted(result, options))).toEqual([
      "[redacted][redacted] secret- [redacted]x",
      "[redacted]",
      "not whole",
    ]);
  });

  test.each([/x*/, /x*/g, /x/y, /(?=x)x/])("is redacted by %s as by any other", async (pattern) => {
    const options: RedactOptions = { patterns: [pattern] };
    for (let times = 0; times < 3; times++)
      expect(await redacted(RawJson.fromValue(["axa"]), options)).toBe('["a[redacted]a"]');
  });

  test("that a pattern cannot get through in time is withheld", async () => {
    const options: RedactOptions = { patterns: [/^(a+)+$/], maxSearchMs: 20 };
    const ended = redacted(RawJson.fromValue([`${"a".repeat(60)}b`]), options);
    await expect(ended).rejects.toEqual(
      new ToolError("The answer of t was withheld: searching it for secrets took longer than 20 ms."),
    );
  });
});

describe("what else the caller is told", () => {
  test("is redacted in failures, and they stay what they are", async () => {
    const failing = (error: Error): Promise<unknown> =>
      end(() => Promise.reject(error), email).catch((caught: unknown) => caught);
    expect(await failing(new ToolError("no a@b.de"))).toEqual(new ToolError("no [redacted]"));
    const refused = new RpcError("rpc.other", "a@b.de", { rpcCode: -1, data: { to: "c@d.de" } });
    expect(await failing(refused)).toMatchObject({
      code: "rpc.other",
      rpcCode: -1,
      message: "[redacted]",
      data: { to: "[redacted]" },
    });
    for (const same of [
      new ToolError("no"),
      new RpcError("rpc.internal", "no", { data: 1 }),
      new Error("a@b.de"),
    ])
      expect(await failing(same)).toBe(same);
  });

  test("is redacted in questions; the state is not the caller's to read", async () => {
    const asked = await end(
      () => inputRequired({ sure: elicit("Write to a@b.de?", {}) }, { to: "a@b.de" }),
      email,
    );
    expect(asked).toEqual(inputRequired({ sure: elicit("Write to [redacted]?", {}) }, { to: "a@b.de" }));
  });

  const done: Outcome = { kind: "complete", result: RawJson.fromText("{}") };
  async function heard(events: readonly CallEvent[], options: RedactOptions): Promise<readonly CallEvent[]> {
    const told: CallEvent[] = [];
    const context = createCallContext({ emit: async (event) => void told.push(event) });
    const emitAll = async ({ emit }: CallContext): Promise<Outcome> => {
      for (const event of events) await emit(event);
      return done;
    };
    await end(emitAll, options, context);
    return told;
  }

  test("is redacted in progress and log messages", async () => {
    const events: CallEvent[] = [
      { kind: "progress", progress: 1, message: "to a@b.de" },
      { kind: "progress", progress: 2 },
      { kind: "log", level: "info", data: { to: ["a@b.de"], at: new Date(0) } },
      { kind: "log", level: "info", data: undefined },
    ];
    expect(await heard(events, email)).toEqual([
      { kind: "progress", progress: 1, message: "to [redacted]" },
      { kind: "progress", progress: 2 },
      { kind: "log", level: "info", data: { to: ["[redacted]"], at: "1970-01-01T00:00:00.000Z" } },
      { kind: "log", level: "info", data: undefined },
    ]);
  });

  test("is not sent when a pattern cannot get through it in time", async () => {
    const options: RedactOptions = { patterns: [/^(a+)+$/], maxSearchMs: 500 };
    const events: CallEvent[] = [
      { kind: "progress", message: `${"a".repeat(60)}b` },
      { kind: "progress", message: "b" },
    ];
    expect(await heard(events, options)).toEqual([{ kind: "progress", message: "b" }]);
  });
});

test("a kind of secret that there is not is refused at once", () => {
  expect(() => redact({ patterns: ["emial" as "email"] })).toThrow(
    'no kind of secret "emial": did you mean email?',
  );
  expect(() => redact({ patterns: ["toString" as "email"] })).toThrow("credit-card");
});
