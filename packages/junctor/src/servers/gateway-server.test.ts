import { expect, test } from "vitest";
import { legacyAgreement } from "../../../../test/support/fake-client.ts";
import type { Health } from "../upstream/connection.ts";
import { type GatewayServer, joinInstructions } from "./gateway-server.ts";

const saying = (name: string, instructions: string | undefined, health?: Health): GatewayServer =>
  ({
    config: { name },
    health: health ?? { kind: "up", since: 0, agreement: { ...legacyAgreement, instructions }, connectMs: 0 },
  }) as unknown as GatewayServer;

test("the instructions of each server stand under its name, and a server without any is left out", () => {
  const servers = [
    saying("github", "  Search first.\n"),
    saying("quiet", undefined),
    saying("empty", " \n "),
    saying("down", "Never.", { kind: "idle" }),
    saying("files", "Paths are absolute."),
  ];
  expect(joinInstructions(servers)).toBe("# github\nSearch first.\n\n# files\nPaths are absolute.");
});

test("without instructions of any server there are none", () => {
  expect(joinInstructions([])).toBeUndefined();
  expect(joinInstructions([saying("quiet", undefined)])).toBeUndefined();
});

test("all together they have a limit, and no character is cut in half", () => {
  const joined = joinInstructions([saying("long", "🙂".repeat(20_000)), saying("b", "x")]) ?? "";
  expect(joined.length).toBeLessThanOrEqual(16 * 1024);
  expect(() => encodeURIComponent(joined)).not.toThrow();
});

test("a server with long instructions takes no room from those of others", () => {
  const greedy = saying("greedy", "x".repeat(100_000));
  const others = Array.from({ length: 9 }, (_, index) => saying(`s${index}`, `Read page ${index} first.`));
  const joined = joinInstructions([greedy, ...others]) ?? "";
  for (const [index] of others.entries()) expect(joined).toContain(`# s${index}\nRead page ${index} first.`);
  expect(joined.length).toBeGreaterThan(15 * 1024);
  expect(joined.length).toBeLessThanOrEqual(16 * 1024);
  const equals = joinInstructions([greedy, saying("second", "y".repeat(100_000))]) ?? "";
  const countOf = (letter: string): number => equals.split(letter).length - 1;
  expect(Math.abs(countOf("x") - countOf("y"))).toBeLessThan(100);
});
