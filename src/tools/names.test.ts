import { Buffer } from "node:buffer";
import { describe, expect, test } from "vitest";
import { NotFoundError } from "../errors/not-found-error.ts";
import { RawJson } from "../json/raw.ts";
import type { Tool } from "../mcp/types.ts";
import { createCallContext } from "./context.ts";
import { definitionOf, fromDefinition } from "./definition.ts";
import type { Member } from "./member-lists.ts";
import { answerOf, createNames, type Names } from "./names.ts";
import { defaultNaming } from "./namespace.ts";
import { createRegistry } from "./registry.ts";

const context = createCallContext();
const provider = createRegistry();

/** Names over lists that can be changed, and what was asked for so far. */
function createLists(lists: { [namespace: string]: readonly Tool[] }): {
  names: Names<Tool>;
  asked: string[];
} {
  const asked: string[] = [];
  const members: Member[] = Object.keys(lists).map((namespace) => ({
    namespace,
    provider: {
      ...provider,
      listTools: async () => {
        asked.push(namespace);
        return lists[namespace] ?? [];
      },
    },
  }));
  const names = createNames(
    members,
    defaultNaming,
    (of) => of.listTools(context),
    () => {},
  );
  return { names, asked };
}

const tools = (...names: readonly string[]): readonly Tool[] =>
  names.map((name) => ({ name, inputSchema: { type: "object" } }));

describe("the owner of a name", () => {
  test("is found without a list once the name was listed", async () => {
    const { names, asked } = createLists({ a: tools("run"), b: tools("run") });
    await names.list(context);
    expect(await names.find("b__run", context)).toMatchObject({ namespace: "b", name: "run" });
    expect(asked).toEqual(["a", "b"]);
  });

  test("is looked for in the one namespace it could be in", async () => {
    const { names, asked } = createLists({ a: tools("run"), ab: tools("run") });
    expect(await names.find("ab__run", context)).toMatchObject({ namespace: "ab", name: "run" });
    expect(await names.find("ab__walk", context)).toBeUndefined();
    expect(asked).toEqual(["ab", "ab"]);
  });

  test.each(["run", "c__run", "__run", "a_run", "A__run", ""])(
    "called %j is nobody, and nobody is asked",
    async (name) => {
      const { names, asked } = createLists({ a: tools("run") });
      expect(await names.find(name, context)).toBeUndefined();
      expect(asked).toEqual([]);
    },
  );

  test("is still found when more names were invented than are remembered", async () => {
    const lists = { a: tools("first") };
    const { names } = createLists(lists);
    await names.list(context);
    for (const round of [1, 2, 3]) {
      lists.a = tools(...Array.from({ length: 40_000 }, (_, index) => `t${round}x${index}`));
      await names.list(context);
    }
    lists.a = tools("last");
    await names.list(context);
    expect(await names.find("a__last", context)).toMatchObject({ name: "last" });
    expect(await names.find("a__first", context)).toBeUndefined();
  });
});

test("a definition from elsewhere keeps its bytes under its qualified name", async () => {
  const odd = '{ "name":"run", "inputSchema" : {"type":"object","maximum":1.0} }';
  const { names } = createLists({ a: [fromDefinition<Tool>(RawJson.parse(Buffer.from(odd)))] });
  const [tool] = await names.list(context);
  expect(definitionOf(tool!).text).toBe(odd.replace("run", "a__run"));
});

describe("an owner's answer", () => {
  const owner = { namespace: "a", provider, name: "run" };

  test("is passed on, and so is its error", async () => {
    expect(await answerOf(owner, "tool", "a__run", Promise.resolve(1))).toBe(1);
    const error = new Error("boom");
    await expect(answerOf(owner, "tool", "a__run", Promise.reject(error))).rejects.toBe(error);
  });

  test("that it has no such thing names it as the caller did", async () => {
    const gone = Promise.reject(new NotFoundError("tool", "run"));
    await expect(answerOf(owner, "tool", "a__run", gone)).rejects.toEqual(
      new NotFoundError("tool", "a__run"),
    );
  });

  test.each([new NotFoundError("resource", "run"), new NotFoundError("tool", "other")])(
    "about something else is passed on: $message",
    async (error) => {
      await expect(answerOf(owner, "tool", "a__run", Promise.reject(error))).rejects.toBe(error);
    },
  );
});
