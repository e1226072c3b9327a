import { expect, test } from "vitest";
import { RawJson } from "../json/raw.ts";
import type { Ask } from "../mcp/types.ts";
import { AskRouter } from "./ask-router.ts";

const ask: Ask = { method: "roots/list" };

interface Routed {
  /** Who was asked, in order. */
  readonly asked: string[];
  join(name: string, owner?: string): (isAnswered: boolean) => void;
  /** Asks, and gives what came of it as text. */
  put(): Promise<string>;
  readonly noticed: () => number;
}

function createRouted(): Routed {
  let noticed = 0;
  const router = new AskRouter(() => noticed++);
  const asked: string[] = [];
  return {
    asked,
    noticed: () => noticed,
    join: (name, owner = "one") =>
      router.join(async () => {
        asked.push(name);
        return RawJson.fromValue(name);
      }, owner),
    put: () =>
      router.ask(ask, new AbortController().signal).then(
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
  const { join, put } = createRouted();
  join("alice")(true);
  await expect(put()).resolves.toBe("refused -32602");
});

test("a question when several are underway is refused at once, and nobody hears it", async () => {
  const { join, put, asked } = createRouted();
  const leave = join("alice");
  join("bob");
  const question = put();
  leave(true);
  await expect(question).resolves.toBe("refused -32602");
  expect(asked).toEqual([]);
});

test("a question after a call was given up may be that call's, and is refused", async () => {
  const { join, put, asked } = createRouted();
  join("alice")(false);
  join("bob");
  await expect(put()).resolves.toBe("refused -32602");
  expect(asked).toEqual([]);
});

test("a question that may be for an earlier call of somebody else is refused", async () => {
  const { join, put, asked } = createRouted();
  join("alice", "alice")(true);
  join("bob", "bob");
  await expect(put()).resolves.toBe("refused -32602");
  expect(asked).toEqual([]);
});
