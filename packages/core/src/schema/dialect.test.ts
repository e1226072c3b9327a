import { expect, test, vi } from "vitest";

test("checks end in the order they began, also while the engine is being loaded", async () => {
  vi.resetModules(); // So that the engine is not loaded yet.
  const { toSchema } = await import("../../../server/src/registry/schema.ts");
  const schema = toSchema({ type: "string" });
  const order: string[] = [];
  const ended: Promise<void>[] = [];
  const check = (name: string, next?: () => void): void => {
    const end = (): void => {
      order.push(name);
      next?.();
    };
    const checked = schema.check(name);
    // A check that needs no waiting ends here, as it does for a registry.
    if (checked instanceof Promise) ended.push(checked.then(end));
    else end();
  };
  check("first", () => check("begun when the first one ended"));
  check("second");
  check("third");
  while (ended.length > 0) await ended.shift();
  expect(order).toEqual(["first", "second", "third", "begun when the first one ended"]);
});
