import { describe, expect, test } from "vitest";
import { createRegistry } from "../../../server/src/registry/registry.ts";
import type { Tool } from "../mcp/types.ts";
import { type CallContext, createCallContext } from "../provider/context.ts";
import { Listing } from "../provider/listing.ts";
import type { Provider } from "../provider/provider.ts";
import { createPolledLists } from "./compose.ts";

const by = (caller: string): CallContext => createCallContext({ caller });
const context = createCallContext();
const toolNamed = (name: string): Tool => ({ name, inputSchema: { type: "object" } });

function unsteady() {
  const state: { error: Error | undefined } = { error: undefined };
  const errors: unknown[] = [];
  const provider: Provider = {
    ...createRegistry(),
    list: async (_, { caller }) => {
      if (state.error !== undefined) throw state.error;
      return new Listing([toolNamed(`for ${caller ?? "all"}`)]) as Listing<never>;
    },
  };
  const lists = createPolledLists({
    name: "a",
    provider,
    onListError: (name, error) => void errors.push(name, error),
    onChanged: () => {},
  });
  const list = async (asking: CallContext): Promise<readonly string[]> => {
    await lists.beginListing(asking, "tools");
    return lists.listsFor(asking).tools.map(({ name }) => name);
  };
  return { list, state, errors };
}

describe("a provider that cannot be listed", () => {
  test("has for each caller the list it had before, and the error is reported", async () => {
    const { list, state, errors } = unsteady();
    await list(by("ada"));
    await list(by("bob"));
    state.error = new Error("down");
    expect(await list(by("ada"))).toEqual(["for ada"]);
    expect(await list(by("bob"))).toEqual(["for bob"]);
    expect(await list(by("eve"))).toEqual([]);
    expect(await list(context)).toEqual([]);
    expect(errors.slice(0, 2)).toEqual(["a", state.error]);
  });

  test("remembers a thousand callers, those seen last", async () => {
    const { list, state } = unsteady();
    await list(by("first"));
    await list(by("faithful"));
    for (let i = 0; i < 1023; i++) {
      await list(by(`caller ${i}`));
      await list(by("faithful"));
    }
    state.error = new Error("down");
    expect(await list(by("first"))).toEqual([]);
    expect(await list(by("faithful"))).toEqual(["for faithful"]);
    expect(await list(by("caller 1"))).toEqual(["for caller 1"]);
  });

  test("fails the caller that gave up", async () => {
    const { list, state, errors } = unsteady();
    state.error = new Error("down");
    const signal = AbortSignal.abort(new Error("gone"));
    await expect(list(createCallContext({ signal }))).rejects.toThrow("gone");
    expect(errors).toEqual([]);
  });
});

test("a provider that answers at once is listed at once, and only a new list is a change", () => {
  const registry = createRegistry();
  registry.register("one", {}, () => "1");
  let changes = 0;
  const options = {
    name: "a",
    provider: registry,
    onListError: () => {},
    onChanged: () => void changes++,
  };
  const lists = createPolledLists(options);
  expect(lists.beginListing(context, "tools")).toBeUndefined();
  expect(lists.beginListing(context, "tools")).toBeUndefined();
  expect(changes).toBe(1);
  expect(lists.listsFor(context).tools.map(({ name }) => name)).toEqual(["one"]);
});
