import { expect, test } from "vitest";
import { createEraCache } from "./negotiate.ts";

test("a legacy verdict expires and a modern one does not", () => {
  let now = 0;
  const eras = createEraCache({ legacyTtlMs: 100, now: () => now });
  eras.set("old", "legacy");
  eras.set("new", "modern");
  now = 99;
  expect(eras.get("old")).toBe("legacy");
  now = 100;
  expect(eras.get("old")).toBeUndefined();
  now = 1e12;
  expect(eras.get("new")).toBe("modern");
});

test("a verdict can be dropped", () => {
  const eras = createEraCache();
  eras.set("a", "modern");
  eras.delete("a");
  expect(eras.get("a")).toBeUndefined();
});

test("a thousand verdicts are kept, the newest of them", () => {
  const eras = createEraCache();
  for (let index = 0; index <= 1000; index++) eras.set(String(index), "modern");
  expect(eras.get("0")).toBeUndefined();
  expect(eras.get("1")).toBe("modern");
  expect(eras.get("1000")).toBe("modern");
});
