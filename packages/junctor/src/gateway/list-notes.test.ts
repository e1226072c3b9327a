import { expect, test } from "vitest";
import {
  callerNamed,
  createCatalogOf,
  createSource,
  type FakeSource,
  toListed,
  toTools,
} from "../../../../test/support/fake-source.ts";
import { defaultNaming } from "../../../core/src/compose/namespace.ts";
import type { Policy } from "../../../core/src/compose/view.ts";
import type { ListFault, ListPart } from "../../../core/src/fit/fit-listed.ts";
import { createGlobs } from "../../../server/src/middleware/allow-list.ts";
import { type ListNote, noteList } from "./list-notes.ts";

const clock = { now: () => 1000, date: () => Date.parse("2026-01-01T00:00:00Z") };
const everything: Policy = () => true;

function note(servers: readonly FakeSource[], part: ListPart = "tools", policy = everything): ListNote {
  const view = createCatalogOf(servers).viewFor(callerNamed(), policy);
  return noteList(part, view, { servers, disabled: [], naming: defaultNaming, clock });
}

test("nothing is said when everything is there", () => {
  expect(note([createSource("a"), createSource("b", { tools: toTools("x") })])).toBeUndefined();
});

test("each server that is not up is named, with the reason, and whether its last list is there", () => {
  const down = createSource("down", { tools: toTools("x") });
  const failure = { code: "lost", reason: "it ended", said: "s3cret" } as const;
  down.health = { kind: "down", since: 0, ...failure, nextTryAt: 10_000, isBroken: false };
  const again = createSource("again");
  again.health = { kind: "starting", since: 0, after: failure };
  const starting = createSource("starting");
  starting.health = { kind: "starting", since: 0 };
  const idle = createSource("idle", { templates: [{ name: "t", uriTemplate: "x:{y}" }] });
  idle.health = { kind: "idle" };
  expect(note([createSource("fine"), down, again, starting, idle])).toEqual({
    "junctor/servers": {
      down: { status: "down", reason: "it ended", nextTryAt: "2026-01-01T00:00:09.000Z", isListed: true },
      again: { status: "starting", reason: "it ended", isListed: false },
      starting: { status: "starting", isListed: false },
      idle: { status: "idle", isListed: true },
    },
  });
});

test("a server that is up and cannot list everything is incomplete", () => {
  const source = createSource("a");
  source.listed = toListed({
    problems: ["its tools cannot be listed: no", "its prompts cannot be listed: no"],
  });
  expect(note([source])).toEqual({
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
  expect(JSON.stringify(note([source]))).toBe(
    '{"junctor/servers":{"__proto__":{"status":"idle","isListed":false}}}',
  );
});

const fault = (name: string, isLeftOut: boolean, part: ListPart = "tools"): ListFault => ({
  part,
  name,
  isLeftOut,
  reason: `${name} is odd`,
});

test("a server that lists what clients would refuse is up, and the note says what was left out and mended", () => {
  const servers = [
    createSource("a", { faults: [fault("x", true), fault("y", false)] }),
    createSource("b", { faults: [fault("z", true)] }),
  ];
  expect(note(servers)).toEqual({
    "junctor/servers": {
      a: {
        status: "up",
        leftOut: [{ name: "x", reason: "x is odd" }],
        mended: [{ name: "y", reason: "y is odd" }],
      },
      b: { status: "up", leftOut: [{ name: "z", reason: "z is odd" }] },
    },
  });
  expect(note(servers, "prompts")).toBeUndefined();
});

test("however much is wrong, the note of it is short", () => {
  const faults = Array.from({ length: 500 }, (_, index) => fault(`t${index}`, true));
  const servers = note([createSource("a", { faults })])?.["junctor/servers"] as {
    readonly a: { readonly leftOut: readonly object[] };
  };
  expect(servers.a.leftOut).toHaveLength(21);
  expect(servers.a.leftOut.at(-1)).toEqual({ name: "…", reason: "and 480 more" });
});

test("a caller sees faults only of things that it might have used", () => {
  const faults = [
    ...["open", "secret", "hidden", "#3"].map((name) => fault(name, true)),
    fault("secret", true, "prompts"),
    fault("x:secret", true, "resources"),
    fault("x:{open}", true, "templates"),
  ];
  const source = createSource("a", { faults }, { tools: { hidden: { hide: true } } });
  const policy = createGlobs(["a__*"], ["*secret*"]);
  const namesIn = (part: ListPart): readonly string[] => {
    const servers = note([source], part, policy)?.["junctor/servers"] as
      | { readonly a: { readonly leftOut: readonly { readonly name: string }[] } }
      | undefined;
    return servers?.a.leftOut.map(({ name }) => name) ?? [];
  };
  expect(namesIn("tools")).toEqual(["open", "#3"]);
  expect(namesIn("prompts")).toEqual([]);
  expect(namesIn("resources")).toEqual([]);
  expect(namesIn("templates")).toEqual(["x:{open}"]);
});

test("a caller sees no note about servers of which it may use nothing", () => {
  const source = createSource("a");
  source.health = { kind: "idle" };
  expect(note([source], "tools", createGlobs(["b__*"], []))).toBeUndefined();
});
