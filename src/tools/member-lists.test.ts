import { describe, expect, test } from "vitest";
import { createCallContext } from "./context.ts";
import { createMemberLists, type Member } from "./member-lists.ts";
import { createRegistry } from "./registry.ts";

const member = (namespace: string): Member => ({ namespace, provider: createRegistry() });
const by = (caller: string) => createCallContext({ caller });
const context = createCallContext();

describe("the lists of all members", () => {
  test("are one, in the order of the members, whoever answers first", async () => {
    const members = [member("slow"), member("fast")];
    const listOf = async ({ namespace }: Member): Promise<readonly string[]> => {
      if (namespace === "slow") await new Promise((resolve) => setImmediate(resolve));
      return [`${namespace} 1`, `${namespace} 2`];
    };
    const lists = createMemberLists(members, listOf, String, () => {});
    expect(await lists.all(context)).toEqual(["slow 1", "slow 2", "fast 1", "fast 2"]);
  });

  test("hold each key once, the earlier member's", async () => {
    const listOf = async ({ namespace }: Member) => [
      { key: "k", namespace },
      { key: namespace, namespace },
    ];
    const lists = createMemberLists(
      [member("a"), member("b")],
      listOf,
      ({ key }) => key,
      () => {},
    );
    expect(await lists.all(context)).toEqual([
      { key: "k", namespace: "a" },
      { key: "a", namespace: "a" },
      { key: "b", namespace: "b" },
    ]);
  });

  test("are the same frozen array while every member's is", async () => {
    let list: readonly string[] = ["x"];
    const lists = createMemberLists(
      [member("a")],
      async () => list,
      String,
      () => {},
    );
    const first = await lists.all(context);
    expect(await lists.all(context)).toBe(first);
    expect(Object.isFrozen(first)).toBe(true);
    list = ["y"];
    expect(await lists.all(context)).toEqual(["y"]);
  });

  test("of no members are empty", async () => {
    expect(
      await createMemberLists(
        [],
        async () => ["x"],
        String,
        () => {},
      ).all(context),
    ).toEqual([]);
  });
});

describe("a member that cannot be listed", () => {
  function unsteady() {
    const state: { error: Error | undefined } = { error: undefined };
    const errors: unknown[] = [];
    const listOf = async (
      _: Member,
      { caller }: { caller: string | undefined },
    ): Promise<readonly string[]> => {
      if (state.error !== undefined) throw state.error;
      return [`for ${caller ?? "nobody"}`];
    };
    const lists = createMemberLists([member("a")], listOf, String, (namespace, error) => {
      errors.push(namespace, error);
    });
    return { lists, state, errors };
  }

  test("has for each caller what it had before, and the error is reported", async () => {
    const { lists, state, errors } = unsteady();
    await lists.all(by("ada"));
    await lists.all(by("bob"));
    state.error = new Error("down");
    expect(await lists.all(by("ada"))).toEqual(["for ada"]);
    expect(await lists.all(by("bob"))).toEqual(["for bob"]);
    expect(await lists.all(by("eve"))).toEqual([]);
    expect(await lists.all(context)).toEqual([]);
    expect(errors.slice(0, 2)).toEqual(["a", state.error]);
  });

  test("remembers a thousand callers, those seen last", async () => {
    const { lists, state } = unsteady();
    await lists.all(by("first"));
    await lists.all(by("faithful"));
    for (let i = 0; i < 1023; i++) {
      await lists.all(by(`caller ${i}`));
      await lists.all(by("faithful"));
    }
    state.error = new Error("down");
    expect(await lists.all(by("first"))).toEqual([]);
    expect(await lists.all(by("faithful"))).toEqual(["for faithful"]);
    expect(await lists.all(by("caller 1"))).toEqual(["for caller 1"]);
  });

  test("fails the caller who gave up", async () => {
    const { lists, state, errors } = unsteady();
    state.error = new Error("down");
    const signal = AbortSignal.abort(new Error("gone"));
    await expect(lists.all(createCallContext({ signal }))).rejects.toThrow("gone");
    expect(errors).toEqual([]);
  });
});
