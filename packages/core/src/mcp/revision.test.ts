import { describe, expect, test } from "vitest";
import { type Revision, everythingRelayable, toRelayable } from "./revision.ts";
import type { ClientCapabilities } from "./types.ts";

const relayed = (declared: object, revision: Revision = "2026-07-28"): ClientCapabilities =>
  toRelayable(declared as ClientCapabilities, revision).capabilities;

describe("what is declared on behalf of a caller", () => {
  test.each<[object, object]>([
    [{}, {}],
    [{ elicitation: {} }, { elicitation: { form: {} } }],
    [{ elicitation: { form: {} } }, { elicitation: { form: {} } }],
    [{ elicitation: { url: {} } }, { elicitation: { url: {} } }],
    [{ elicitation: { form: {}, url: {} } }, { elicitation: { form: {}, url: {} } }],
    [{ sampling: {} }, { sampling: {} }],
    [{ sampling: { tools: {}, context: {} } }, { sampling: { tools: {} } }],
    [{ roots: { listChanged: true } }, { roots: {} }],
    [{ experimental: { x: {} }, extensions: { y: {} }, tasks: {} }, {}],
    [{ elicitation: true, sampling: 1, roots: null }, {}],
    [
      { elicitation: { url: true }, sampling: { tools: 1 } },
      { elicitation: { form: {} }, sampling: {} },
    ],
  ])("%j becomes %j", (declared, expected) => {
    expect(relayed(declared)).toEqual(expected);
  });

  test.each<[Revision, object]>([
    ["2024-11-05", { sampling: {}, roots: {} }],
    ["2025-03-26", { sampling: {}, roots: {} }],
    ["2025-06-18", { elicitation: { form: {} }, sampling: {}, roots: {} }],
    ["2025-11-25", everythingRelayable],
    ["2026-07-28", everythingRelayable],
  ])("in %s is what that revision has a form for", (revision, expected) => {
    expect(relayed({ ...everythingRelayable }, revision)).toEqual(expected);
  });

  test("is nothing for a caller of 2025-06-18 that says it can only visit pages", () => {
    expect(relayed({ elicitation: { url: {} } }, "2025-06-18")).toEqual({});
  });
});

describe("the key", () => {
  test("is empty for callers that can be asked nothing", () => {
    expect(toRelayable({}, "2026-07-28").key).toBe("");
    expect(toRelayable({ elicitation: {} }, "2024-11-05").key).toBe("");
  });

  test("is the same for the same capabilities, however they are written, and another for others", () => {
    const one = toRelayable({ roots: { listChanged: true }, elicitation: {} }, "2026-07-28").key;
    const other = toRelayable({ elicitation: { form: {} }, roots: {} }, "2025-11-25").key;
    expect(one).toBe(other);
    expect(toRelayable({ elicitation: { url: {} }, roots: {} }, "2025-11-25").key).not.toBe(one);
  });

  test("gives the capabilities back", () => {
    const { key, capabilities } = toRelayable({ sampling: { tools: {} }, roots: {} }, "2025-11-25");
    expect(JSON.parse(key)).toEqual(capabilities);
  });
});

test("the same declaration means something else in another revision", () => {
  const declared: ClientCapabilities = { elicitation: { form: {}, url: {} } };
  expect(relayed(declared, "2026-07-28")).toEqual({ elicitation: { form: {}, url: {} } });
  expect(relayed(declared, "2025-06-18")).toEqual({ elicitation: { form: {} } });
});
