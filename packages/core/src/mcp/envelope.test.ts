import { expect, test } from "vitest";
import type { RawJson } from "../json/raw.ts";
import { parseMessage } from "../rpc/parse.ts";
import { type Envelope, metaOf, parseEnvelope } from "./era.ts";
import { messageShape } from "./methods.ts";

// A cached envelope is the same object, so identity counts the hits.

test("calls that differ in nothing but their trace share one envelope", () => {
  const envelopes = Array.from({ length: 1_000 }, (_, n) => read({ ...sender("traced"), ...trace(n) }));
  expect(new Set(envelopes).size).toBe(1);
});

test("calls that differ in nothing but their progress token share one envelope", () => {
  const envelopes = Array.from({ length: 1_000 }, (_, n) =>
    read({ ...sender("counted"), progressToken: n, ...trace(n) }),
  );
  expect(new Set(envelopes).size).toBe(1);
});

test("a thousand traced calls do not push out the envelope of a plain one", () => {
  const plain = read(sender("plain"));
  const traced = Array.from({ length: 1_000 }, (_, n) => read({ ...sender("another"), ...trace(n) }));
  expect(read(sender("plain"))).toBe(plain);
  expect(new Set(traced).size).toBe(1);
});

test("a traced and a plain call of one client share the envelope, whichever came first", () => {
  const traced = read({ ...sender("both"), ...trace(1) });
  const plain = read(sender("both"));
  expect(plain.era?.clientInfo).toBe(traced.era?.clientInfo);
  expect(read({ ...trace(2), ...sender("both") })).toBe(traced);
  expect(read(sender("both"))).toBe(plain);
});

test("only a call with nothing but an envelope is known to be bare", () => {
  const calls = [sender("bare"), { ...sender("bare"), ...trace(1) }, { ...sender("bare"), progressToken: 1 }];
  expect([...calls, ...calls].map((meta) => read(meta).era?.isBare)).toEqual([
    true,
    false,
    false,
    true,
    false,
    false,
  ]);
});

test("clients that describe themselves differently have envelopes of their own", () => {
  const traced = ["one", "two"].map((name) => read({ ...sender(name), ...trace(1) }));
  expect(traced.map(({ era }) => era?.clientInfo?.name)).toEqual(["one", "two"]);
});

test("a member that is missing is not taken from a call that looks alike", () => {
  read({ ...sender("whole"), ...trace(1) });
  const { "io.modelcontextprotocol/clientCapabilities": _, ...rest } = sender("whole");
  expect(() => read({ ...rest, ...trace(2) })).toThrow("clientCapabilities");
});

test("clients that take turns each find their own", () => {
  const [one, two] = [read(sender("one")), read(sender("two"))];
  for (let turn = 0; turn < 3; turn++) {
    expect(read(sender("one"))).toBe(one);
    expect(read(sender("two"))).toBe(two);
  }
});

type Meta = Record<string, unknown>;

function sender(name: string): Meta {
  return {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name, version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": { elicitation: {} },
  };
}

function trace(n: number): Meta {
  const id = n.toString(16).padStart(32, "0");
  return { traceparent: `00-${id}-00f067aa0ba902b7-01`, tracestate: `vendor=${n}` };
}

function read(meta: Meta): Envelope {
  return parseEnvelope(metaOf(paramsOf({ name: "echo", arguments: {}, _meta: meta })));
}

/** As a transport reads them: found by the one scan of the message. */
function paramsOf(params: object): RawJson | undefined {
  const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const message = parseMessage(Buffer.from(text), { shape: messageShape });
  if (message.kind !== "request") throw new Error(`not a request: ${text}`);
  return message.params;
}

test.each([
  [
    "a reference that comes twice",
    '"ref":{"type":"ref/prompt","name":"a"},"ref":{"type":"ref/prompt","name":"b"}',
  ],
  [
    "a reference in another case",
    '"ref":{"type":"ref/prompt","name":"a"},"Ref":{"type":"ref/prompt","name":"b"}',
  ],
  ["a reference with two names", '"ref":{"type":"ref/prompt","name":"a","name":"b"}'],
  ["a reference with two URIs", '"ref":{"type":"ref/resource","uri":"a:1","URI":"b:1"}'],
])("%s is refused: a server could read the other one", (_, ref) => {
  const argument = '"argument":{"name":"x","value":""}';
  const text = `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{${ref},${argument}}}`;
  expect(parseMessage(Buffer.from(text), { shape: messageShape })).toMatchObject({ kind: "invalid" });
});
