import { Buffer } from "node:buffer";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { jsonText } from "../../../../test/support/arbitrary-json.ts";
import { runs } from "../../../../test/support/runs.ts";
import { Pieced } from "../json/pieced.ts";
import { RawJson } from "../json/raw.ts";
import { scan } from "../json/scan.ts";
import { methods, messageShape } from "../mcp/methods.ts";
import { createCompletion, createOperation, readOperation, toParams } from "./operation.ts";
import type { Operation, Round } from "./provider.ts";

/** The params as a server gets them: part of a scanned message. */
function received(params: string, isPieced = false): RawJson {
  const bytes = Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"any","params":${params}}`);
  const index = scan(bytes, messageShape);
  const halves = [bytes.subarray(0, bytes.length >> 1), bytes.subarray(bytes.length >> 1)];
  const message = RawJson.fromScan(isPieced ? new Pieced(halves) : bytes, messageShape, index);
  return message.at("params") as RawJson;
}

const known = [
  "name",
  "uri",
  "taskId",
  "arguments",
  "cursor",
  "requestState",
  "inputResponses",
  "task",
  "_meta",
];
const reserved = new Set([...known, "requestId", "progressToken"].map((key) => key.toLowerCase()));

/** A key as text: also with needless escapes, and keys that objects treat specially. */
const unknownKey = fc
  .oneof(
    fc.constantFrom(
      '"__proto__"',
      '"constructor"',
      '""',
      '"tasks"',
      '"n\\u0061mes"',
      '"\\u00e9"',
      '"é"',
      '"0"',
    ),
    fc.string({ unit: "binary", maxLength: 6 }).map((key) => JSON.stringify(key)),
  )
  .filter((key) => !reserved.has((JSON.parse(key) as string).toLowerCase()));

const value = jsonText().map((text) => text.trim());
const object = fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 3 });
const gap = fc.constantFrom("", " ", "\n ");
const unknowns = fc.uniqueArray(fc.tuple(unknownKey, value), {
  selector: ([key]) => JSON.parse(key) as unknown,
  maxLength: 5,
});

/** How the operation that leaves differs from the one that came. */
const changes = fc.record({
  name: fc.option(fc.string({ unit: "binary", minLength: 1, maxLength: 5 }), { nil: undefined }),
  arguments: fc.option(object, { nil: undefined }),
  round: fc.option(
    fc.record({
      answers: fc.dictionary(fc.string({ maxLength: 3 }), object, { maxKeys: 2 }),
      state: fc.option(fc.string()),
    }),
    { nil: undefined },
  ),
});

/** The members of an object, each as its own bytes. */
function membersOf(raw: RawJson): { [key: string]: string | undefined } {
  const keys = Object.keys(JSON.parse(raw.text) as object);
  return Object.fromEntries(keys.map((key) => [key, raw.at(key)?.text]));
}

test("params keep every unknown member byte for byte, and have the name, arguments and round of the operation", () => {
  const method = fc.constantFrom("tools/call", "prompts/get", "resources/read", "tasks/update", "tasks/get");
  const message = fc.record({
    method,
    unknowns,
    args: fc.option(object, { nil: undefined }),
    meta: fc.option(object, { nil: undefined }),
    state: fc.option(fc.string(), { nil: undefined }),
    gap,
    order: fc.integer(),
    isLong: fc.boolean(),
    form: fc.constantFrom("scanned", "pieced", "parsed", "text"),
  });
  fc.assert(
    fc.property(message, changes, (sent, changed) => {
      const row = methods.get(sent.method);
      const key = row?.name ?? "name";
      const strings = sent.method === "prompts/get" ? {} : (sent.args ?? {});
      const takesAnswers = sent.method === "tasks/update";
      const parts: [string, string][] = [
        [JSON.stringify(key), '"first"'],
        ...sent.unknowns,
        ...(sent.args === undefined || takesAnswers
          ? []
          : [['"arguments"', JSON.stringify(strings)] as [string, string]]),
        ...(sent.meta === undefined ? [] : [['"_meta"', JSON.stringify(sent.meta)] as [string, string]]),
        ...(sent.state === undefined
          ? []
          : [['"requestState"', JSON.stringify(sent.state)] as [string, string]]),
        ...(takesAnswers ? [['"inputResponses"', '{ "a":{"x":1.0} }'] as [string, string]] : []),
        ...(sent.isLong ? [['"filler"', `"${"x".repeat(70_000)}"`] as [string, string]] : []),
      ];
      const turn = Math.abs(sent.order) % parts.length;
      const turned = [...parts.slice(turn), ...parts.slice(0, turn)];
      const text = `{${sent.gap}${turned.map((pair) => pair.join(`${sent.gap}:${sent.gap}`)).join(`${sent.gap},${sent.gap}`)}${sent.gap}}`;
      const params = {
        scanned: () => received(text),
        pieced: () => received(text, true),
        parsed: () => RawJson.parse(Buffer.from(text)),
        text: () => RawJson.fromText(text, true),
      }[sent.form]();
      const read = readOperation(row!, params);
      const { state, answers } = changed.round ?? {};
      const round: Round | undefined = changed.round && {
        answers: Object.fromEntries(
          Object.entries(answers ?? {}).map(([each, answer]) => [each, RawJson.fromValue(answer)]),
        ),
        state: state ?? undefined,
      };
      const operation: Operation = {
        ...read,
        name: changed.name ?? read.name,
        arguments: changed.arguments === undefined ? read.arguments : RawJson.fromValue(changed.arguments),
        round,
        ref: key === "taskId" ? changed.name : undefined,
      };
      const made = toParams(operation);
      // Also refuses a known member that occurs twice.
      const members = membersOf(received(made.text));
      const hasArguments = row?.arguments === "arguments";
      const hasAnswers = Object.keys(answers ?? {}).length > 0;
      // A method without arguments does not know the member.
      const isUnknown = !hasArguments && !takesAnswers && sent.args !== undefined;
      const expected: { [key: string]: string | undefined } = Object.fromEntries(
        [...sent.unknowns, ...(sent.isLong ? [parts.at(-1)!] : [])].map(([each, is]) => [
          JSON.parse(each) as string,
          is,
        ]),
      );
      expected[key] = JSON.stringify(operation.ref ?? operation.name);
      if (hasArguments && (sent.args !== undefined || changed.arguments !== undefined))
        expected["arguments"] = operation.arguments.text;
      if (isUnknown) expected["arguments"] = JSON.stringify(strings);
      if (takesAnswers) expected["inputResponses"] = operation.arguments.text;
      else if (hasAnswers)
        expected["inputResponses"] = `{${Object.entries(round!.answers)
          .map(([each, answer]) => `${JSON.stringify(each)}:${answer.text}`)
          .join(",")}}`;
      if (!takesAnswers && typeof state === "string") expected["requestState"] = JSON.stringify(state);
      if (hasArguments && expected["arguments"] === undefined) delete members["arguments"];
      expect(members).toEqual(expected);
      expect(RawJson.parse(made.bytes).text).toBe(made.text);
    }),
    { numRuns: runs(500) },
  );
});

test("the params of a completion keep every unknown member, also of what it completes", () => {
  fc.assert(
    fc.property(
      unknowns,
      unknowns,
      fc.option(fc.string({ minLength: 1 })),
      fc.boolean(),
      (outer, inner, name, isPrompt) => {
        const free = (list: typeof outer): typeof outer =>
          list.filter(([key]) => !["ref", "argument", "context", "type"].includes(JSON.parse(key) as string));
        const write = (list: readonly (readonly [string, string])[]): string =>
          list.map((pair) => pair.join(": ")).join(" ,");
        const ref = `{${write([['"type"', isPrompt ? '"ref/prompt"' : '"ref/resource"'], ...free(inner), [isPrompt ? '"name"' : '"uri"', '"first"']])}}`;
        const text = `{${write([...free(outer), ['"_meta"', "{}"], ['"ref"', ref], ['"argument"', '{"name":"a","value":"b","more":1.0}']])}}`;
        const operation = createCompletion(received(text));
        const made = toParams({ ...operation, name: name ?? operation.name });
        const members = membersOf(made);
        expect(membersOf(made.at("ref") as RawJson)).toEqual({
          ...Object.fromEntries(free(inner).map(([key, is]) => [JSON.parse(key) as string, is])),
          type: isPrompt ? '"ref/prompt"' : '"ref/resource"',
          [isPrompt ? "name" : "uri"]: JSON.stringify(name ?? "first"),
        });
        expect(members).toEqual({
          ...Object.fromEntries(free(outer).map(([key, is]) => [JSON.parse(key) as string, is])),
          ref: made.at("ref")?.text,
          argument: '{"name":"a","value":"b","more":1.0}',
        });
      },
    ),
    { numRuns: runs(200) },
  );
});

test("an operation that was made here has the params of its method", () => {
  const args = { arguments: { a: 1 } };
  expect(toParams(createOperation("tools/call", "add", args)).text).toBe(
    '{"name":"add","arguments":{"a":1}}',
  );
  expect(toParams(createOperation("resources/read", "a:b")).text).toBe('{"uri":"a:b"}');
  expect(toParams(createOperation("tasks/get", "add", { ref: "7" })).text).toBe('{"taskId":"7"}');
});

test("large arguments are not copied", () => {
  const params = received(`{"name":"first","arguments":{"text":"${"x".repeat(100_000)}"},"_meta":{}}`);
  const operation = readOperation(methods.get("tools/call")!, params);
  const pieces = toParams({ ...operation, name: "second" }).written as readonly Uint8Array[];
  const large = pieces.filter(({ length }) => length > 1000);
  expect(large.map(({ buffer }) => buffer === params.bytes.buffer)).toEqual([true]);
});

test("a task of 2025-11-25 is not passed on: each client begins its own", () => {
  const params = received('{"task":{"ttl":1},"name":"add","arguments":{"a":1},"extra":2}');
  const { text } = toParams(readOperation(methods.get("tools/call")!, params));
  expect(JSON.parse(text)).toEqual({ name: "add", arguments: { a: 1 }, extra: 2 });
});
