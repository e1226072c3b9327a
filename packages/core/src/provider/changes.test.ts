import { expect, test } from "vitest";
import { createChangeSource } from "./changes.ts";
import type { OldChange } from "./old.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("several changes of one kind in one turn are reported once, those of another turn again", async () => {
  const source = createChangeSource();
  const seen: OldChange[] = [];
  source.onChange((change) => seen.push(change));
  source.report({ kind: "tools" });
  source.report({ kind: "prompts" });
  source.report({ kind: "tools" });
  expect(seen).toEqual([]);
  await turn();
  expect(seen).toEqual([{ kind: "tools" }, { kind: "prompts" }]);
  source.report({ kind: "tools" });
  await turn();
  expect(seen).toHaveLength(3);
});

test("changes of different resources are different changes", async () => {
  const source = createChangeSource();
  const seen: OldChange[] = [];
  source.onChange((change) => seen.push(change));
  for (const uri of ["a:1", "a:2", "a:1"]) source.report({ kind: "resource", uri });
  await turn();
  expect(seen).toEqual([
    { kind: "resource", uri: "a:1" },
    { kind: "resource", uri: "a:2" },
  ]);
});

test("a listener hears nothing after it stopped, and nothing from before it came", async () => {
  const source = createChangeSource();
  const [early, late]: [OldChange[], OldChange[]] = [[], []];
  const stop = source.onChange((change) => early.push(change));
  source.report({ kind: "tools" });
  await turn();
  stop();
  stop();
  source.report({ kind: "prompts" });
  source.onChange((change) => late.push(change));
  await turn();
  expect([early, late]).toEqual([[{ kind: "tools" }], []]);
});

test("one function listening twice hears until both have stopped", async () => {
  const source = createChangeSource();
  const seen: OldChange[] = [];
  const listener = (change: OldChange): void => void seen.push(change);
  const stop = source.onChange(listener);
  source.onChange(listener);
  stop();
  source.report({ kind: "tools" });
  await turn();
  expect(seen).toEqual([{ kind: "tools" }]);
});
