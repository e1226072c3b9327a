import { describe, expect, test } from "vitest";
import { RawJson } from "../json/raw.ts";
import type { Ask } from "../mcp/types.ts";
import { createVirtualClock, type VirtualClock } from "../testing/virtual-clock.ts";
import type { AskCaller } from "../tools/context.ts";
import { AskRouter } from "./ask-router.ts";

const ask: Ask = { method: "roots/list" };

interface Routed {
  readonly router: AskRouter;
  readonly clock: VirtualClock;
  /** Who was asked, in order. */
  readonly asked: string[];
  join(name: string): (isAnswered: boolean) => void;
  /** Asks, and gives what came of it as text. */
  put(signal?: AbortSignal): Promise<string>;
  readonly noticed: () => number;
}

function createRouted(): Routed {
  const clock = createVirtualClock();
  let noticed = 0;
  const router = new AskRouter({ clock, maxWaitMs: 1000, onAsked: () => noticed++ });
  const asked: string[] = [];
  return {
    router,
    clock,
    asked,
    noticed: () => noticed,
    join: (name) => {
      const caller: AskCaller = async () => {
        asked.push(name);
        return RawJson.fromValue(name);
      };
      return router.join(caller);
    },
    put: (signal = new AbortController().signal) =>
      router.ask(ask, signal).then(
        ({ value }) => String(value),
        (error: unknown) => `refused ${(error as { readonly rpcCode: number }).rpcCode}`,
      ),
  };
}

test("a question is for the one call that is underway", async () => {
  const { join, put, asked, noticed } = createRouted();
  join("alice");
  await expect(put()).resolves.toBe("alice");
  expect(asked).toEqual(["alice"]);
  expect(noticed()).toBe(1);
});

test("a question when none is underway is refused", async () => {
  const { join, put, noticed } = createRouted();
  join("alice")(true);
  await expect(put()).resolves.toBe("refused -32602");
  expect(noticed()).toBe(1);
});

describe("with several calls underway, a question", () => {
  test("waits until the others have ended", async () => {
    const { join, put, clock, asked } = createRouted();
    const leaves = ["alice", "bob", "carol"].map(join);
    const answer = put();
    await clock.advance(500);
    leaves[1]?.(true);
    await clock.advance(400);
    expect(asked).toEqual([]);
    leaves[0]?.(true);
    await expect(answer).resolves.toBe("carol");
    expect(clock.sleeping).toBe(0);
  });

  test("is refused after a while, and nobody has heard of it", async () => {
    const { join, put, clock, asked } = createRouted();
    join("alice");
    join("bob");
    const answer = put();
    await clock.advance(1000);
    await expect(answer).resolves.toBe("refused -32602");
    expect(asked).toEqual([]);
  });

  test("is refused when one of them is given up: it may be that one's, and is not for the others", async () => {
    const { join, put, clock, asked } = createRouted();
    const leave = join("alice");
    join("bob");
    const answer = put();
    await clock.advance(10);
    leave(false);
    await expect(answer).resolves.toBe("refused -32602");
    expect(asked).toEqual([]);
    expect(clock.sleeping).toBe(0);
  });

  test("that the server takes back is asked of nobody", async () => {
    const { join, put, clock, asked } = createRouted();
    const leave = join("alice");
    join("bob");
    const taken = new AbortController();
    const answer = put(taken.signal);
    taken.abort();
    leave(true);
    await expect(answer).resolves.toBe("refused -32602");
    expect(asked).toEqual([]);
    expect(clock.sleeping).toBe(0);
  });

  test("is refused when all of them end", async () => {
    const { join, put } = createRouted();
    const leaves = ["alice", "bob"].map(join);
    const answer = put();
    for (const leave of leaves) leave(true);
    await expect(answer).resolves.toBe("refused -32602");
  });

  test("is not asked of one that came in the moment it was placed", async () => {
    const { join, put, asked } = createRouted();
    const leave = join("alice");
    join("bob");
    const answer = put();
    leave(true);
    join("carol");
    await expect(answer).resolves.toBe("refused -32602");
    expect(asked).toEqual([]);
  });
});
