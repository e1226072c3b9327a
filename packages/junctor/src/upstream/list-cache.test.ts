import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  createFakeClient,
  type FakeAnswers,
  type FakeClient,
  turn,
} from "../../../../test/support/fake-client.ts";
import { sleep } from "../../../core/src/async/clock.ts";
import { createDeferred, type Deferred } from "../../../core/src/async/queue.ts";
import { HttpError, RpcError } from "../../../core/src/errors/index.ts";
import type { ListFault, ListPart } from "../../../core/src/fit/fit-listed.ts";
import type { Tool } from "../../../core/src/mcp/types.ts";
import { createVirtualClock, type VirtualClock } from "../testing/virtual-clock.ts";
import { ListCache, type Listed, type ListKind } from "./list-cache.ts";

interface Made {
  readonly lists: ListCache;
  readonly clock: VirtualClock;
  readonly reported: (readonly ListKind[])[];
  readonly toolNames: () => readonly string[];
}

function make({ known }: { readonly known?: Listed } = {}): Made {
  const clock = createVirtualClock(1_000_000);
  const reported: (readonly ListKind[])[] = [];
  const lists = new ListCache({
    clock,
    remembered: known,
    report: (changed) => {
      if (changed.length > 0) reported.push(changed);
    },
  });
  return {
    lists,
    clock,
    reported,
    toolNames: () => lists.listed.tools.map(({ name }) => name),
  };
}

const tools = (...names: readonly string[]): readonly Tool[] =>
  names.map((name) => ({ name, inputSchema: { type: "object" } }));

const offering = (...names: readonly string[]): FakeAnswers => ({
  tools: () => Promise.resolve(tools(...names)),
});

describe("listing", () => {
  test("everything is listed when a server comes up, and what changed is reported", async () => {
    const { lists, reported, toolNames } = make();
    expect(lists.isListed).toBe(false);
    await lists.begin(
      createFakeClient({
        ...offering("a", "b"),
        templates: () => Promise.resolve([{ name: "t", uriTemplate: "x:{y}" }]),
        hints: { ttlMs: 5, cacheScope: "public" },
      }).client,
    );
    expect(toolNames()).toEqual(["a", "b"]);
    expect(lists.listed).toMatchObject({ hints: { ttlMs: 5, cacheScope: "public" }, problems: [] });
    expect(reported.flat().toSorted()).toEqual(["resources", "tools"]);
    expect(lists.isListed).toBe(true);
  });

  test("the same lists of another process are the same arrays, and nothing is reported", async () => {
    const { lists, reported } = make();
    await lists.begin(createFakeClient(offering("a", "b")).client);
    const { tools: before, prompts } = lists.listed;
    lists.end();
    await lists.begin(createFakeClient(offering("a", "b")).client);
    expect(lists.listed.tools).toBe(before);
    expect(lists.listed.prompts).toBe(prompts);
    expect(reported).toEqual([["tools"]]);
  });

  test("another order, and another description, is a change", async () => {
    const { lists, reported } = make();
    await lists.begin(createFakeClient(offering("a", "b")).client);
    await lists.begin(createFakeClient(offering("b", "a")).client);
    const described = tools("b", "a").map((tool) => ({ ...tool, description: "new" }));
    await lists.begin(createFakeClient({ tools: () => Promise.resolve(described) }).client);
    expect(reported).toEqual([["tools"], ["tools"], ["tools"]]);
  });

  test("a list that hangs hides neither the others nor what was known of it", async () => {
    const { lists, toolNames } = make();
    await lists.begin(createFakeClient({ prompts: () => Promise.resolve([{ name: "p" }]) }).client);
    void lists.begin(createFakeClient({ ...offering("a"), prompts: () => new Promise(() => {}) }).client);
    await turn();
    expect(toolNames()).toEqual(["a"]);
    expect(lists.listed.prompts).toEqual([{ name: "p" }]);
  });
});

describe("what clients would refuse", () => {
  const fault = (part: ListPart, name: string): ListFault => ({ part, name, isLeftOut: true, reason: "odd" });
  const namesOf = (lists: ListCache): readonly string[] => lists.listed.faults.map(({ name }) => name);

  test("is known with the list it was found in, and until that list is another", async () => {
    const { lists } = make();
    const fake = createFakeClient({ ...offering("a"), faults: [fault("tools", "x"), fault("prompts", "p")] });
    await lists.begin(fake.client);
    expect(namesOf(lists)).toEqual(["x", "p"]);
    fake.answers.faults = [fault("tools", "y")];
    await lists.refreshSince(["tools"], Number.POSITIVE_INFINITY);
    expect(namesOf(lists)).toEqual(["y", "p"]);
  });

  test("stays known while its list fails", async () => {
    const { lists } = make();
    const fake = createFakeClient({ ...offering("a"), faults: [fault("tools", "x")] });
    await lists.begin(fake.client);
    fake.answers.faults = [];
    fake.answers.tools = () => Promise.reject(new Error("not now"));
    await lists.refreshSince(["tools"], Number.POSITIVE_INFINITY);
    expect(namesOf(lists)).toEqual(["x"]);
  });
});

describe("when a list fails", () => {
  test("the last good one stays, and the problem is described without addresses", async () => {
    const { lists, toolNames } = make();
    await lists.begin(createFakeClient(offering("a")).client);
    const failing = createFakeClient({
      tools: () => Promise.reject(new HttpError(500, "https://host/s3cret", "s3cret")),
      resources: () => Promise.reject(new RpcError("rpc.internal", "the database is away")),
    });
    await lists.begin(failing.client);
    expect(toolNames()).toEqual(["a"]);
    expect(lists.listed.problems).toEqual([
      "its tools cannot be listed: it answered with HTTP status 500",
      "its resources cannot be listed: the database is away",
    ]);
  });

  test("the others are there all the same", async () => {
    const { lists, toolNames } = make();
    await lists.begin(
      createFakeClient({ ...offering("a"), prompts: () => Promise.reject(new Error("no prompts")) }).client,
    );
    expect(toolNames()).toEqual(["a"]);
    expect(lists.listed.problems).toHaveLength(1);
  });

  test("a list that never came leaves nothing unconfirmed, unless it is that of the tools", async () => {
    const refuse = (): Promise<never> => Promise.reject(new RpcError("rpc.internal", "no database"));
    const { lists } = make();
    await lists.begin(createFakeClient({ ...offering("a"), resources: refuse }).client);
    expect(lists.listed).toMatchObject({
      isConfirmed: true,
      problems: [expect.stringContaining("resources")],
    });

    const { lists: other } = make();
    await other.begin(createFakeClient({ tools: refuse }).client);
    expect(other.listed.isConfirmed).toBe(false);
  });

  test("a list that is known from before and fails now is not confirmed", async () => {
    const { lists: first } = make();
    const resources = (): Promise<readonly [{ name: string; uri: string }]> =>
      Promise.resolve([{ name: "r", uri: "x:r" }]);
    await first.begin(createFakeClient({ ...offering("a"), resources }).client);
    const { lists } = make({ known: first.listed });
    const refuse = (): Promise<never> => Promise.reject(new RpcError("rpc.internal", "no database"));
    await lists.begin(createFakeClient({ ...offering("a"), resources: refuse }).client);
    expect(lists.listed).toMatchObject({ isConfirmed: false, resources: [{ uri: "x:r" }] });
  });

  test("a server whose tools were never listed is not listed", async () => {
    const { lists } = make();
    await lists.begin(createFakeClient({ tools: () => Promise.reject(new Error("not yet")) }).client);
    expect(lists.isListed).toBe(false);
  });

  test("a problem lasts until that list comes, whatever else is listed meanwhile", async () => {
    const { lists, clock } = make();
    const fake = createFakeClient({ prompts: () => Promise.reject(new Error("no prompts")) });
    await lists.begin(fake.client);
    fake.announce({ part: "tools" });
    await clock.advance(50);
    expect(lists.listed.problems).toHaveLength(1);
    delete fake.answers.prompts;
    fake.announce({ part: "prompts" });
    await clock.advance(100);
    await turn();
    expect(lists.listed.problems).toEqual([]);
  });
});

describe("changes", () => {
  test("many that come together are one listing, of what changed and nothing else", async () => {
    const { lists, clock } = make();
    const fake = createFakeClient(offering("a"));
    await lists.begin(fake.client);
    for (let count = 0; count < 100; count++) fake.announce({ part: "tools" });
    fake.announce({ part: "resources" });
    await clock.advance(49);
    expect(fake.asked).toMatchObject({ tools: 1, resources: 1 });
    await clock.advance(1);
    expect(fake.asked).toMatchObject({ tools: 2, resources: 2, templates: 2, prompts: 1 });
    expect(clock.sleeping).toBe(0);
  });

  test("a server that announces without end is listed ever more rarely, and one list at a time", async () => {
    const { lists, clock } = make();
    let isListing = 0;
    let most = 0;
    const fake = createFakeClient({
      tools: async () => {
        most = Math.max(most, ++isListing);
        await turn();
        isListing--;
        return [];
      },
    });
    await lists.begin(fake.client);
    for (let ms = 0; ms < 120_000; ms += 100) {
      fake.announce({ part: "tools" });
      await clock.advance(100);
    }
    expect(most).toBe(1);
    // Ten to reach the longest pause, which is 30 s, and a few of those.
    expect(fake.asked.tools).toBeLessThanOrEqual(15);
    expect(fake.asked.tools).toBeGreaterThan(10);
    const before = fake.asked.tools ?? 0;
    await clock.advance(200_000);
    fake.announce({ part: "tools" });
    await clock.advance(50);
    expect(fake.asked.tools).toBe(before + 2);
  });

  test("a server with very many tools is listed again after a while that is longer the more there are", async () => {
    const { lists, clock } = make();
    const fake = createFakeClient(offering(...Array.from({ length: 8000 }, (_, index) => `t${index}`)));
    await lists.begin(fake.client);
    fake.announce({ part: "tools" });
    await clock.advance(7999);
    expect(fake.asked.tools).toBe(1);
    await clock.advance(1);
    expect(fake.asked.tools).toBe(2);
  });

  test("a server whose list fails after long is not listed again for a while, and then is", async () => {
    const { lists, clock } = make();
    const fake = createFakeClient({
      tools: async () => {
        await sleep(400, clock);
        throw new RpcError("rpc.other", "The server lists more than 10000 tools");
      },
    });
    const begun = lists.begin(fake.client);
    await clock.advance(400);
    await begun;
    fake.announce({ part: "tools" });
    await clock.advance(7999);
    expect(fake.asked.tools).toBe(1);
    await clock.advance(1);
    expect(fake.asked.tools).toBe(2);
  });

  test("one that comes while it is listed makes it listed again, once", async () => {
    const { lists, clock, toolNames } = make();
    const asked: Deferred<readonly Tool[]>[] = [];
    const fake = createFakeClient({
      tools: () => {
        const list = createDeferred<readonly Tool[]>();
        asked.push(list);
        return list.promise;
      },
    });
    void lists.begin(fake.client);
    fake.announce({ part: "tools" });
    await clock.advance(50);
    fake.announce({ part: "tools" });
    await clock.advance(50);
    expect(asked).toHaveLength(1);
    asked[0]?.resolve(tools("old"));
    await turn();
    expect(asked).toHaveLength(2);
    asked[1]?.resolve(tools("new"));
    await turn();
    expect(asked).toHaveLength(2);
    expect(toolNames()).toEqual(["new"]);
  });

  test("what a server announces after it was replaced means nothing", async () => {
    const { lists, clock } = make();
    const old = createFakeClient(offering("old"));
    const next = createFakeClient(offering("new"));
    await lists.begin(old.client);
    lists.end();
    await lists.begin(next.client);
    old.announce({ part: "tools" });
    await clock.advance(100);
    expect(old.asked.tools).toBe(1);
    expect(next.asked.tools).toBe(1);
  });
});

describe("the end of a server", () => {
  test("leaves what it listed, and no timer", async () => {
    const { lists, clock, toolNames } = make();
    const fake = createFakeClient(offering("a"));
    await lists.begin(fake.client);
    fake.announce({ part: "tools" });
    lists.end();
    expect(clock.sleeping).toBe(0);
    expect(toolNames()).toEqual(["a"]);
    lists.refreshAfter(0);
    await turn();
    expect(fake.asked.tools).toBe(1);
  });

  test("while it lists drops its answer, and does not hold up the next", async () => {
    const { lists, toolNames, reported } = make();
    const slow = createDeferred<readonly Tool[]>();
    const begun = lists.begin(createFakeClient({ tools: () => slow.promise }).client);
    lists.end();
    await lists.begin(createFakeClient(offering("new")).client);
    expect(toolNames()).toEqual(["new"]);
    slow.resolve(tools("old"));
    await begun;
    expect(toolNames()).toEqual(["new"]);
    expect(reported).toEqual([["tools"]]);
  });

  test("while it lists is not reported as a problem of the list", async () => {
    const { lists } = make();
    const slow = createDeferred<readonly Tool[]>();
    const begun = lists.begin(createFakeClient({ tools: () => slow.promise }).client);
    lists.end();
    slow.reject(new Error("gone"));
    await begun;
    expect(lists.listed.problems).toEqual([]);
    expect(lists.isListed).toBe(false);
  });
});

test("old lists are renewed when somebody looks, at most once at a time", async () => {
  const { lists, clock, toolNames } = make();
  const fake = createFakeClient(offering("a"));
  await lists.begin(fake.client);
  lists.refreshAfter(1000);
  await clock.advance(1000);
  fake.answers.tools = () => Promise.resolve(tools("b"));
  for (let looks = 0; looks < 10; looks++) lists.refreshAfter(1000);
  await turn();
  expect(fake.asked.tools).toBe(2);
  expect(toolNames()).toEqual(["b"]);
});

test("whatever happens, what is known in the end is what the last server lists", async () => {
  type Step = "begin" | "end" | "change" | "settle" | "settleLast" | "fail" | "wait";
  const step = fc.constantFrom<Step>("begin", "end", "change", "settle", "settleLast", "fail", "wait");
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(step, fc.boolean()), { maxLength: 40, size: "max" }),
      async (happening) => {
        const { lists, clock, toolNames } = make();
        const open: { readonly list: Deferred<readonly Tool[]>; readonly version: string }[] = [];
        let version = 0;
        let server: FakeClient | undefined;
        let mostOpen = 0;
        const begin = (): void => {
          const perServer = { open: 0 };
          version++;
          server = createFakeClient({
            tools: () => {
              const list = createDeferred<readonly Tool[]>();
              open.push({ list, version: `v${version}` });
              mostOpen = Math.max(mostOpen, ++perServer.open);
              void list.promise.then(
                () => perServer.open--,
                () => perServer.open--,
              );
              return list.promise;
            },
          });
          void lists.begin(server.client);
        };
        for (const [each, isTurn] of happening) {
          if (each === "begin") begin();
          if (each === "end") lists.end();
          if (each === "change") {
            version++;
            server?.announce({ part: "tools" });
          }
          const settled = each === "settle" ? open.shift() : each === "settleLast" ? open.pop() : undefined;
          settled?.list.resolve(tools(settled.version));
          if (each === "fail") open.shift()?.list.reject(new Error("no"));
          if (each === "wait") await clock.advance(50);
          if (isTurn) await turn();
        }
        begin();
        for (let rounds = 0; rounds < 50; rounds++) {
          for (const { list, version: listed } of open.splice(0)) list.resolve(tools(listed));
          await clock.advance(50);
        }
        expect(toolNames()).toEqual([`v${version}`]);
        expect(mostOpen).toBe(1);
        lists.end();
        expect(clock.sleeping).toBe(0);
      },
    ),
    { numRuns: 100 },
  );
});
