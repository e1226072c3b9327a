import { describe, expect, test } from "vitest";
import { RawJson } from "../json/raw.ts";
import { elicit, elicitUrl, listRoots, sample } from "../mcp/question.ts";
import {
  type AnswerReader,
  inputRequired,
  isInputRequired,
  noAnswers,
  readAnswers,
  text,
} from "./content.ts";

describe("questions", () => {
  test("a form has a flat object schema", () => {
    expect(elicit("Who?", { name: { type: "string" } }, ["name"])).toEqual({
      method: "elicitation/create",
      params: {
        message: "Who?",
        requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
      },
    });
    expect(elicit("Who?", {}).params).toEqual({
      message: "Who?",
      requestedSchema: { type: "object", properties: {} },
    });
  });

  test("a page, a model and the roots are asked for by their methods", () => {
    expect(elicitUrl("Sign in", "https://a.example")).toEqual({
      method: "elicitation/create",
      params: { mode: "url", message: "Sign in", url: "https://a.example" },
    });
    const params = { messages: [{ role: "user", content: text("hi") }], maxTokens: 5 } as const;
    expect(sample(params)).toEqual({ method: "sampling/createMessage", params });
    expect(listRoots()).toEqual({ method: "roots/list" });
  });

  test("a round ends with its questions, and its state if there is one", () => {
    const asks = { roots: listRoots() };
    expect(inputRequired(asks)).toEqual({ kind: "input_required", asks });
    expect(inputRequired(asks, null)).toEqual({ kind: "input_required", asks, state: null });
    expect(isInputRequired(inputRequired({}))).toBe(true);
    for (const other of [undefined, null, "input_required", { kind: "complete" }])
      expect(isInputRequired(other)).toBe(false);
  });
});

describe("answers", () => {
  const reader = (answer: string): AnswerReader =>
    readAnswers({ answers: { key: RawJson.fromText(answer) }, state: undefined });

  test("are undefined until the question is answered", () => {
    for (const answers of [noAnswers, readAnswers({ answers: {}, state: 1 })]) {
      expect([answers.elicited("key"), answers.sampled("key"), answers.roots("key")]).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
      expect(answers.elicited("__proto__")).toBeUndefined();
      expect(answers.elicited("constructor")).toBeUndefined();
    }
  });

  test("to a form are what the user did", () => {
    expect(reader('{"action":"accept","content":{"name":"Ada"}}').elicited("key")).toEqual({
      action: "accept",
      content: { name: "Ada" },
    });
    expect(reader('{"action":"accept"}').elicited("key")).toEqual({ action: "accept", content: {} });
    expect(reader('{"action":"decline","content":{"a":1}}').elicited("key")).toEqual({ action: "decline" });
    expect(reader('{"action":"cancel"}').elicited("key")).toEqual({ action: "cancel" });
  });

  test("of the model are what it wrote", () => {
    const answer =
      '{"role":"assistant","model":"m","content":{"type":"text","text":"hi"},"stopReason":"end"}';
    expect(reader(answer).sampled("key")).toEqual(JSON.parse(answer));
    const several = '{"role":"assistant","model":"m","content":[{"type":"tool_use","name":"t"}]}';
    expect(reader(several).sampled("key")).toEqual(JSON.parse(several));
  });

  test("about roots are the roots", () => {
    expect(reader('{"roots":[{"uri":"file:///a","name":"a"}]}').roots("key")).toEqual([
      { uri: "file:///a", name: "a" },
    ]);
    expect(reader('{"roots":[]}').roots("key")).toEqual([]);
  });

  test.each(["1", "null", "[]", '"accept"', "{}", '{"action":"maybe"}', '{"action":1}'])(
    "of the wrong shape, such as %s, count as missing",
    (answer) => {
      expect(reader(answer).elicited("key")).toBeUndefined();
      expect(reader(answer).sampled("key")).toBeUndefined();
      expect(reader(answer).roots("key")).toBeUndefined();
    },
  );

  test.each(['{"model":"m"}', '{"model":1,"content":[]}', '{"model":"m","content":"hi"}'])(
    "of the model that are only %s count as missing",
    (answer) => {
      expect(reader(answer).sampled("key")).toBeUndefined();
    },
  );

  test.each(['{"roots":{}}', '{"roots":[null]}', '{"roots":[{"name":"a"}]}', '{"roots":[{"uri":1}]}'])(
    "about roots that are %s count as missing",
    (answer) => {
      expect(reader(answer).roots("key")).toBeUndefined();
    },
  );
});
