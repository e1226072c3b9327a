import { expect, test } from "vitest";
import { createSource, toListed, toTools } from "../../../test/support/fake-source.ts";
import type { ListFault } from "../../tools/fit/list-fault.ts";
import type { Claim } from "./merge.ts";
import { missingServers } from "./missing.ts";

test("nothing is said when everything is there", () => {
  expect(missingServers([createSource("a"), createSource("b", { tools: toTools("x") })])).toBeUndefined();
});

test("each that is not up is named, with why, and whether its last list is there", () => {
  const down = createSource("down", { tools: toTools("x") });
  const failure = { code: "lost", reason: "it ended", said: "s3cret" } as const;
  down.health = { kind: "down", since: 0, ...failure, nextTryAt: 1, isBroken: false };
  const starting = createSource("starting");
  starting.health = { kind: "starting", since: 0 };
  const idle = createSource("idle", { templates: [{ name: "t", uriTemplate: "x:{y}" }] });
  idle.health = { kind: "idle" };
  expect(missingServers([createSource("fine"), down, starting, idle])).toEqual({
    "junctor/servers": {
      down: { status: "down", reason: "it ended", isListed: true },
      starting: { status: "starting", isListed: false },
      idle: { status: "idle", isListed: true },
    },
  });
});

test("one that is up and cannot list everything is incomplete", () => {
  const source = createSource("a");
  source.listed = toListed({
    problems: ["its tools cannot be listed: no", "its prompts cannot be listed: no"],
  });
  expect(missingServers([source])).toEqual({
    "junctor/servers": {
      a: {
        status: "incomplete",
        reason: "its tools cannot be listed: no; its prompts cannot be listed: no",
        isListed: false,
      },
    },
  });
});

test("a server may have any name", () => {
  const source = createSource("__proto__");
  source.health = { kind: "idle" };
  expect(JSON.stringify(missingServers([source]))).toBe(
    '{"junctor/servers":{"__proto__":{"status":"idle","isListed":false}}}',
  );
});

const fault = (name: string, isLeftOut: boolean, server = "a"): Claim<ListFault> => ({
  key: `${server}__${name}`,
  item: { part: "tools", name, isLeftOut, reason: `${name} is odd` },
  server,
  ownName: name,
});

test("one that is up and lists what clients would refuse is up, and says what was left out and what was mended", () => {
  const faults = [fault("x", true), fault("y", false), fault("z", true, "b")];
  expect(missingServers([createSource("a"), createSource("c")], [], faults)).toEqual({
    "junctor/servers": {
      a: {
        status: "up",
        leftOut: [{ name: "x", reason: "x is odd" }],
        mended: [{ name: "y", reason: "y is odd" }],
      },
    },
  });
});

test("however much is wrong, what is said of it is short", () => {
  const many = Array.from({ length: 1000 }, (_, index) => fault(`${index}${"x".repeat(500)}`, false));
  const text = JSON.stringify(missingServers([createSource("a")], [], many));
  expect(text.length).toBeLessThan(20_000);
  expect(text).toContain('{"name":"…","reason":"and 980 more"}');
});
