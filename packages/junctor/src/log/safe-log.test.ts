import { expect, test } from "vitest";
import { createHide, createSafeLog, type GatewayLog, joinSecrets } from "./log.ts";

test("a safe log writes a secret neither as text, nor as a key, nor as a number", () => {
  const lines: (readonly [object, string])[] = [];
  const write = (facts: object, text: string): void => void lines.push([facts, text]);
  const log: GatewayLog = { debug: write, info: write, warn: write, error: write };
  const safe = createSafeLog(
    log,
    createHide(() => ["sk-secret", "987654"]),
  );
  safe.warn({ "of sk-secret": { pin: 987654, ms: 12 }, said: ["sk-secret!"] }, "met sk-secret");
  expect(lines).toEqual([
    [{ "of [secret]": { pin: "[secret]", ms: 12 }, said: ["[secret]!"] }, "met [secret]"],
  ]);
});

test("a secret that begins with another one is hidden as a whole, whichever came first", () => {
  const secrets = joinSecrets(["short-1"], ["short-1-and-longer"]);
  expect(createHide(() => secrets)('"short-1-and-longer"')).toBe('"[secret]"');
});
