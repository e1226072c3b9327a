import { expect, test } from "vitest";
import { createSource, toTools } from "../../../../test/support/fake-source.ts";
import { lastWordsOf } from "../upstream/failure.ts";
import { describeStatus } from "./status.ts";

const counts = { tools: 2, resources: 1, prompts: 0 };

test("a server that is up says what it speaks, who it is and how much it offers", () => {
  const source = createSource("a");
  expect(describeStatus(source, 0, counts)).toEqual({
    name: "a",
    status: "up",
    era: "legacy",
    revision: "2025-11-25",
    says: "fake 1.0.0",
    ...counts,
    connectMs: 12,
  });
});

test("one that cannot list everything says what", () => {
  const source = createSource("a", { problems: ["its tools cannot be listed: no"] });
  expect(describeStatus(source, 0, counts)).toMatchObject({
    status: "up",
    trouble: "its tools cannot be listed: no",
    code: "not_listed",
  });
});

test("one that has not listed its tools says so, and what its process wrote", () => {
  const source = createSource("a", { isConfirmed: false });
  source.isListed = false;
  expect(
    describeStatus({ ...source, words: { said: "waiting for the database", stray: "" } }, 3000, counts),
  ).toMatchObject({
    status: "up",
    trouble: "its tools are still being listed, since 3 s",
    code: "not_listed",
    said: "waiting for the database",
  });
});

test("one that has listed its tools, and not all the rest yet, is in no trouble", () => {
  const source = createSource("a", { tools: toTools("x"), isConfirmed: false });
  source.isSettled = false;
  expect(describeStatus(source, 3000, counts)).not.toHaveProperty("trouble");
});

test("one that was never needed has no trouble", () => {
  const source = createSource("a");
  source.health = { kind: "idle" };
  expect(describeStatus(source, 0, counts)).toEqual({
    name: "a",
    status: "idle",
    ...counts,
  });
});

test("one that is down says why, what it wrote, when it is tried again, and what was known of it", () => {
  const source = createSource("a");
  source.health = {
    kind: "down",
    since: 0,
    code: "exited",
    reason: "it exited with code 1",
    said: "no database",
    nextTryAt: 9_500,
    isBroken: true,
  };
  expect(describeStatus(source, 1000, counts)).toEqual({
    name: "a",
    status: "down",
    ...counts,
    trouble: "it exited with code 1: no database; it failed too often, and it is tried again in 9 s",
    reason: "it exited with code 1",
    code: "exited",
    said: "no database",
  });
});

test.each([
  [{ kind: "starting", since: 0 } as const, "it is still starting, since 2 s"],
  [{ kind: "stopped" } as const, "it was stopped or removed, or the gateway is shutting down"],
])("%j is trouble", (health, trouble) => {
  const source = createSource("a");
  source.health = health;
  expect(describeStatus(source, 1500, counts)).toMatchObject({ status: health.kind, trouble });
});

test("one that is still starting says what its process wrote so far, or what the last one wrote", () => {
  const source = createSource("a");
  source.health = { kind: "starting", since: 0 };
  expect(
    describeStatus({ ...source, words: { said: "waiting for the database", stray: "" } }, 0, counts),
  ).toMatchObject({
    code: "starting",
    said: "waiting for the database",
  });
  const after = { code: "exited", reason: "it exited with code 1", said: "no database" } as const;
  source.health = { kind: "starting", since: 0, after };
  expect(describeStatus({ ...source, words: { said: "", stray: "" } }, 0, counts)).toMatchObject({
    code: "exited",
    reason: "it exited with code 1",
    said: "no database",
  });
});

test("one that is up keeps its chatter to itself, but not what it wrote between its messages", () => {
  const status = describeStatus(
    { ...createSource("a"), words: { said: "chatter", stray: "Listening on 3000" } },
    0,
    counts,
  );
  expect(status).toMatchObject({ stray: "Listening on 3000" });
  expect(status).not.toHaveProperty("said");
});

test("what clients would refuse is shown, and is not trouble", () => {
  const fault = { part: "tools", name: "x", reason: "odd" } as const;
  const faults = [
    { ...fault, isLeftOut: true },
    { ...fault, isLeftOut: false },
  ];
  const status = describeStatus(createSource("a", { faults }), 0, counts);
  expect(status).toMatchObject({ leftOut: [faults[0]], mended: [faults[1]] });
  expect(status).not.toHaveProperty("trouble");
});

test.each([
  ["API token expired (401)\n", "API token expired (401)"],
  [
    'file.js:3\nthrow new Error("no key");\n^\n\nError: no key\n    at main (file.js:3:7)\n\nNode.js v22.1.0\n',
    "Error: no key",
  ],
  [
    "node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\nError: Cannot find module 'left'\nRequire stack:\n- /a/main.js\n    at a (b:1:2) {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: [\n    '/a/main.js'\n  ]\n}\n\nNode.js v22.1.0\n",
    "Error: Cannot find module 'left'",
  ],
  [
    "npm error 404 'x@*' is not in this registry.\nnpm error 404\nnpm error 404 Note that you can also install from a\nnpm error 404 tarball, folder, http url, or git url.",
    "npm error 404 'x@*' is not in this registry.",
  ],
  [
    "npm error 404 Not Found\nnpm error A complete log of this run can be found in: /a.log",
    "npm error 404 Not Found",
  ],
  ["  \n^\n", undefined],
])("the last words of %j", (said, words) => {
  expect(lastWordsOf(said)).toBe(words);
});
