import { expect, test } from "vitest";
import { legacyAgreement } from "../../test/support/fake-client.ts";
import { joinInstructions } from "./gateway-server.ts";
import type { Health } from "./upstream/health.ts";
import type { Upstream } from "./upstream/upstream.ts";

const saying = (name: string, instructions: string | undefined, health?: Health): Upstream =>
  ({
    name,
    health: health ?? { kind: "up", since: 0, agreement: { ...legacyAgreement, instructions }, connectMs: 0 },
  }) as unknown as Upstream;

test("what each server says stands under its name, and who says nothing is left out", () => {
  const servers = [
    saying("github", "  Search first.\n"),
    saying("quiet", undefined),
    saying("empty", " \n "),
    saying("down", "Never.", { kind: "idle" }),
    saying("files", "Paths are absolute."),
  ];
  expect(joinInstructions(servers)).toBe("# github\nSearch first.\n\n# files\nPaths are absolute.");
});

test("nobody saying anything is nothing", () => {
  expect(joinInstructions([])).toBeUndefined();
  expect(joinInstructions([saying("quiet", undefined)])).toBeUndefined();
});

test("all together they have a limit, and no character is cut in half", () => {
  const joined = joinInstructions([saying("long", "🙂".repeat(20_000)), saying("b", "x")]) ?? "";
  expect(joined.length).toBeLessThanOrEqual(16 * 1024);
  expect(() => encodeURIComponent(joined)).not.toThrow();
});
