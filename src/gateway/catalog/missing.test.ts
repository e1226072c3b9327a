import { expect, test } from "vitest";
import { createSource, toListed, toTools } from "../../../test/support/fake-source.ts";
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
