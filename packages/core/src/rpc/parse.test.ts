import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { growthOf } from "../../../../test/support/growth.ts";
import { runs } from "../../../../test/support/runs.ts";
import type { JsonError } from "../errors/index.ts";
import { Pieced } from "../json/pieced.ts";
import { messageShape } from "../mcp/methods.ts";
import type { Batch, Invalid } from "./channel.ts";
import { encodeMessage, type Message, type Request } from "./message.ts";
import { parseMessage, parsePieced } from "./parse.ts";

function parse(text: string | Uint8Array): ReturnType<typeof parseMessage> {
  return parseMessage(typeof text === "string" ? Buffer.from(text) : text, { shape: messageShape });
}

function refusal(text: string | Uint8Array): {
  code: number;
  cause: string | undefined;
  id: unknown;
  isAnswerable: boolean;
} {
  const { kind, id, error, isAnswerable } = parse(text) as Invalid;
  expect(kind).toBe("invalid");
  return { code: error.rpcCode, cause: (error.cause as JsonError | undefined)?.code, id, isAnswerable };
}

describe("a message", () => {
  test.each([
    ["request", '{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1}}'],
    ["request", '{"id":"one","params":{},"method":"a","jsonrpc":"2.0"}'],
    ["notification", '{"jsonrpc":"2.0","method":"a"}'],
    ["result", '{"jsonrpc":"2.0","id":1,"result":null}'],
    ["error", '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":[]}}'],
    ["error", '{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}'],
    ["error", '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}'],
    ["request", '{"jsonrpc":"2.0","id":1,"method":"a","unknown":{"Method":1}}'],
    ["result", '{"jsonrpc":"2.0","id":1,"result":{"ResultType":1}}'],
  ])("is a %s: %s", (kind, text) => {
    expect(parse(text).kind).toBe(kind);
  });

  test.each(["1", '"1"', "12345678901234567890", "-0", '"\\n"', '""', "-9007199254740993"])(
    "keeps its id %s as it was spelled",
    (id) => {
      const message = parse(`{"jsonrpc":"2.0","id":${id},"method":"a"}`) as Message;
      expect(encodeMessage(message).text).toBe(`{"jsonrpc":"2.0","id":${id},"method":"a"}`);
    },
  );

  test("has one id, however that is escaped", () => {
    const message = parse('{"jsonrpc":"2.0","id":"a\\/\\u0062","method":"a"}') as Request;
    expect(message.id).toBe('"a/b"');
  });

  test("comes out as it went in, whatever it says", () => {
    const id = fc.oneof(fc.maxSafeInteger(), fc.string()).map((value) => JSON.stringify(value));
    const object = fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value));
    const message = fc.oneof(
      fc
        .tuple(id, fc.string(), object)
        .map(
          ([id, method, params]) =>
            `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`,
        ),
      fc.tuple(id, object).map(([id, result]) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`),
    );
    fc.assert(
      fc.property(message, (text) => {
        const parsed = parseMessage(Buffer.from(text));
        if (parsed.kind === "invalid") return; // Random keys may collide with the envelope's.
        expect(encodeMessage(parsed as Message).text).toBe(text);
      }),
    );
  });
});

describe("what is not JSON is refused with -32700", () => {
  test.each([
    ["json.syntax", "{"],
    ["json.syntax", "nonsense"],
    ["json.syntax", "{'jsonrpc':'2.0'}"],
    ["json.syntax", '{"jsonrpc":"2.0","id":01,"method":"a"}'],
    ["json.syntax", '["a",]'],
    ["json.trailing", '{"jsonrpc":"2.0","id":1,"method":"a"}{}'],
    ["json.bom", '\ufeff{"jsonrpc":"2.0","id":1,"method":"a"}'],
    ["json.utf8", Uint8Array.of(0x22, 0xff, 0x22)],
  ])("for %s: %j", (cause, text) => {
    expect(refusal(text)).toEqual({ code: -32700, cause, id: undefined, isAnswerable: true });
  });
});

describe("JSON that is not a message is refused with -32600", () => {
  test.each([
    ["1", undefined],
    ['"text"', undefined],
    ["null", undefined],
    ["{}", undefined],
    ["[]", undefined],
    ['{"jsonrpc":"2.0"}', undefined],
    ['{"jsonrpc":"2.0","id":1}', "1"],
    ['{"jsonrpc":"1.0","id":1,"method":"a"}', "1"],
    ['{"id":1,"method":"a"}', "1"],
    ['{"jsonrpc":2.0,"id":1,"method":"a"}', "1"],
    ['{"jsonrpc":"2.0","id":1,"method":7}', "1"],
    ['{"jsonrpc":"2.0","method":7}', undefined],
    ['{"jsonrpc":"2.0","id":null,"method":"a"}', undefined],
    ['{"jsonrpc":"2.0","id":1.5,"method":"a"}', undefined],
    ['{"jsonrpc":"2.0","id":1e2,"method":"a"}', undefined],
    ['{"jsonrpc":"2.0","id":{},"method":"a"}', undefined],
    ['{"jsonrpc":"2.0","id":true,"method":"a"}', undefined],
    ['{"jsonrpc":"2.0","id":1,"method":"a","params":[]}', "1"],
    ['{"jsonrpc":"2.0","id":1,"method":"a","params":null}', "1"],
    ['{"jsonrpc":"2.0","id":1,"method":"a","result":{}}', "1"],
    ['{"jsonrpc":"2.0","id":1,"method":"a","error":{"code":1,"message":""}}', "1"],
  ])("%s", (text, id) => {
    expect(refusal(text)).toEqual({ code: -32600, cause: undefined, id, isAnswerable: true });
  });

  test.each([
    ["json.duplicate_key", '{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}', "1"],
    ["json.duplicate_key", '{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}', undefined],
    [
      "json.duplicate_key",
      '{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","n\\u0061me":"y"}}',
      "1",
    ],
    ["json.case_variant_key", '{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}', "1"],
    ["json.case_variant_key", '{"jsonrpc":"2.0","id":1,"Method":"b"}', "1"],
    ["json.case_variant_key", '{"jsonrpc":"2.0","id":1,"method":"a","param\u017f":{}}', "1"],
    ["json.case_variant_key", '{"jsonrpc":"2.0","id":1,"method":"a","params":{"NAME":"x"}}', "1"],
    ["json.depth", `{"jsonrpc":"2.0","id":1,"method":"a","params":${nest(256)}}`, "1"],
    ["json.case_variant_key", '{"jsonrpc":"2.0","Id":7,"method":"a"}', undefined],
  ])("%s: %s", (cause, text, id) => {
    expect(refusal(text)).toEqual({ code: -32600, cause, id, isAnswerable: true });
  });

  test("but nesting of exactly the limit is a message", () => {
    expect(parse(`{"jsonrpc":"2.0","id":1,"method":"a","params":${nest(255)}}`).kind).toBe("request");
  });
});

describe("is never answered, because it is", () => {
  test.each([
    [
      "a response with both result and error",
      '{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}',
    ],
    ["a result without an id", '{"jsonrpc":"2.0","result":{}}'],
    ["a result with a bad id", '{"jsonrpc":"2.0","id":1.5,"result":{}}'],
    ["a response of another version", '{"jsonrpc":"1.0","id":1,"result":{}}'],
    ["a response without a version", '{"id":1,"result":{}}'],
    ["an error without a message", '{"jsonrpc":"2.0","id":1,"error":{"code":1}}'],
    ["an error that is not an object", '{"jsonrpc":"2.0","id":1,"error":"no"}'],
    ["a response with two results", '{"jsonrpc":"2.0","id":1,"result":1,"result":2}'],
    ["a response with two ids", '{"jsonrpc":"2.0","id":1,"id":2,"result":2}'],
    ["a response with a case variant", '{"jsonrpc":"2.0","id":1,"ID":2,"result":2}'],
    ["a notification with params in an array", '{"jsonrpc":"2.0","method":"a","params":[1]}'],
    ["a notification of another version", '{"jsonrpc":"1.0","method":"a"}'],
    ["a notification with a result", '{"jsonrpc":"2.0","method":"a","result":1}'],
    [
      "a notification with a key twice",
      '{"jsonrpc":"2.0","method":"a","params":{"requestId":1,"requestId":2}}',
    ],
    ["a notification with two methods", '{"jsonrpc":"2.0","method":"a","method":"b"}'],
    ["a notification with a case variant", '{"jsonrpc":"2.0","method":"a","Params":{}}'],
  ])("%s", (_, text) => {
    expect(refusal(text)).toMatchObject({ code: -32600, isAnswerable: false });
  });
});

describe("a batch", () => {
  test("holds its messages, and an error in place of anything else", () => {
    const text = '[ {"jsonrpc":"2.0","id":1,"method":"a"} , 7 ,[[]],{"jsonrpc":"2.0","method":"b"}]';
    expect((parse(text) as Batch).items.map((item) => item.kind)).toEqual([
      "request",
      "invalid",
      "invalid",
      "notification",
    ]);
  });

  test("of more messages than the limit is refused as a whole", () => {
    const batch = (count: number): string =>
      `[${Array.from({ length: count }, (_, id) => `{"jsonrpc":"2.0","id":${id},"method":"a"}`).join(",")}]`;
    expect(parse(batch(128)).kind).toBe("batch");
    expect(refusal(batch(129))).toMatchObject({ code: -32600, isAnswerable: true });
  });

  test("nested to the limit costs no more than its size", () => {
    const textOf = (depth: number): string =>
      `${"[".repeat(depth)}"${"x".repeat(1024 * 1024)}"${"]".repeat(depth)}`;
    const texts = new Map([1, 255].map((depth) => [depth, textOf(depth)]));
    const work = (depth: number): unknown => parse(texts.get(depth)!);
    expect((parse(textOf(255)) as Batch).items).toMatchObject([{ kind: "invalid" }]);
    // If each level read the text again, it would be 255.
    expect(growthOf({ small: 1, large: 255, work }, 8)).toBeLessThan(8);
  });
});

describe("whatever comes", () => {
  test("arbitrary bytes never throw", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(parseMessage(bytes).kind).toBe("invalid");
      }),
      { numRuns: runs(2000) },
    );
  });

  test("a message with any of its bytes changed never throws", () => {
    const bytes = Buffer.from(
      '{"jsonrpc":"2.0","id":"\\u00e9","method":"tools/call","params":{"name":"é","arguments":{"a":[1.0,-0]},"_meta":{}}}',
    );
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(255), (place, value) => {
        const changed = Uint8Array.from(bytes);
        changed[place] = value;
        expect(["request", "notification", "invalid"]).toContain(parse(changed).kind);
      }),
      { numRuns: runs(2000) },
    );
  });

  test("any JSON, cut off anywhere, never throws", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), (text, place) => {
        const bytes = Buffer.from(text);
        parse(bytes);
        expect(parse(bytes.subarray(0, place % bytes.length)).kind).toMatch(/invalid|batch/);
      }),
    );
  });
});

function nest(depth: number): string {
  return `${'{"a":'.repeat(depth - 1)}{}${"}".repeat(depth - 1)}`;
}

test("bytes in pieces are read as the same bytes in one", () => {
  const message = fc.constantFrom(
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é","arguments":{"a":1.0}}}',
    '{"jsonrpc":"2.0","id":"x","result":{"resultType":"complete","content":[]}}',
    ' {"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no","data":{}}}',
    '[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":2,"result":{}}]',
    '{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}',
    '{"jsonrpc":"2.0","id":3,"method":"a","Params":{}}',
    '{"jsonrpc":"2.0","id":4',
    "1",
  );
  fc.assert(
    fc.property(message, fc.nat(90), fc.nat(90), (text, first, second) => {
      const bytes = Buffer.from(text);
      const [from, to] = [Math.min(first, second), Math.max(first, second)];
      const pieced = new Pieced([bytes.subarray(0, from), bytes.subarray(from, to), bytes.subarray(to)]);
      const options = { shape: messageShape };
      expect(shown(parsePieced(pieced, options))).toEqual(shown(parseMessage(bytes, options)));
    }),
    { numRuns: runs(300) },
  );
});

/** A message as plain JSON, to compare. */
function shown(incoming: ReturnType<typeof parseMessage>): unknown {
  return JSON.parse(JSON.stringify(incoming));
}
