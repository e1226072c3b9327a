import { expect, test } from "vitest";
import { createChanges, createWatches } from "./changes.ts";
import { createCallContext } from "./context.ts";
import type { Change, Notice } from "./provider.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("several changes of one kind in one turn are reported once, those of another turn again", async () => {
  const source = createChanges();
  const seen: Change[] = [];
  source.onChange((change) => seen.push(change));
  source.report({ part: "tools" });
  source.report({ part: "prompts" });
  source.report({ part: "tools" });
  expect(seen).toEqual([]);
  await turn();
  expect(seen).toEqual([{ part: "tools" }, { part: "prompts" }]);
  source.report({ part: "tools" });
  await turn();
  expect(seen).toHaveLength(3);
});

test("updates of different resources are different, those of one in one turn are reported once", async () => {
  const watches = createWatches();
  const seen: Notice[] = [];
  for (const uri of ["a:1", "a:2"]) watches.add(uri, createCallContext(), (notice) => seen.push(notice));
  for (const uri of ["a:1", "a:2", "a:1"]) watches.report(uri);
  await turn();
  expect(seen).toEqual([
    { kind: "updated", uri: "a:1" },
    { kind: "updated", uri: "a:2" },
  ]);
});

test("changes for different callers are different changes", async () => {
  const source = createChanges();
  const seen: Change[] = [];
  source.onChange((change) => seen.push(change));
  const isForAda = (): boolean => true;
  for (const isFor of [isForAda, undefined, isForAda]) source.report({ part: "tools", isFor });
  await turn();
  expect(seen).toHaveLength(2);
});

test("a listener gets nothing after it stopped, and nothing from before it was added", async () => {
  const source = createChanges();
  const [early, late]: [Change[], Change[]] = [[], []];
  const stop = source.onChange((change) => early.push(change));
  source.report({ part: "tools" });
  await turn();
  stop();
  stop();
  source.report({ part: "prompts" });
  source.onChange((change) => late.push(change));
  await turn();
  expect([early, late]).toEqual([[{ part: "tools" }], []]);
});

test("a function that was added twice is called until both are removed", async () => {
  const source = createChanges();
  const seen: Change[] = [];
  const listener = (change: Change): void => void seen.push(change);
  const stop = source.onChange(listener);
  source.onChange(listener);
  stop();
  source.report({ part: "tools" });
  await turn();
  expect(seen).toEqual([{ part: "tools" }]);
});
