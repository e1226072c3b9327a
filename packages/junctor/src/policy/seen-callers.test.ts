import { expect, test } from "vitest";
import { SeenCallers } from "./seen-callers.ts";

const issuer = "https://login.example";

test("callers with a token are remembered until it expires, and callers with a key are not", () => {
  let now = 1000;
  const seen = new SeenCallers(() => now);
  const ada = { name: "corp:ada", issuer, groups: ["eng"], expiresAt: 2000 };
  seen.note(ada);
  seen.note({ name: "corp:bob", issuer });
  seen.note({ name: "key" });
  expect(seen.names()).toEqual(["corp:ada", "corp:bob"]);
  expect(seen.find("corp:ada")).toBe(ada);
  now = 2000;
  expect(seen.find("corp:ada")).toBeUndefined();
  expect(seen.names()).toEqual(["corp:bob"]);
});

test("at most 1,000 are remembered, those that came last, each as its last token says", () => {
  const seen = new SeenCallers(() => 0);
  for (let number = 0; number < 5000; number++) seen.note({ name: `corp:${number}`, issuer });
  expect(seen.names()).toHaveLength(1000);
  expect(seen.names().at(-1)).toBe("corp:4999");
  seen.note({ name: "corp:4500", issuer, groups: ["new"] });
  expect(seen.names().at(-1)).toBe("corp:4500");
  expect(seen.find("corp:4500")?.groups).toEqual(["new"]);
});
