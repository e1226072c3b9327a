import { expect, test } from "vitest";
import { z } from "zod";
import { createApp } from "./app.ts";
import { assertTakes, namesOf } from "./parameters.ts";

const takes = (handler: unknown, names: readonly string[] | undefined): void =>
  assertTakes(handler, { what: 'Tool "t"', plural: "arguments", names });

test.each<[handler: unknown]>([
  [({ city }: { city: string }) => city],
  [async ({ city: renamed = "Oslo, (x}" }: { city?: string }) => renamed],
  [({ city, ...rest }: { city: string }) => [city, rest]],
  [({ city: quoted }: { city: string }) => quoted],
  [(args: object) => args],
  [(args: unknown, { user, ask }: { user: unknown; ask: unknown }) => [args, user, ask]],
  [
    function* ({ city }: { city: string }) {
      yield city;
    },
  ],
  [Math.max],
  [undefined],
])("a handler that takes what it gets may: %s", (handler) => {
  expect(() => takes(handler, ["city"])).not.toThrow();
});

test("a handler that takes what it never gets is refused, with a suggestion", () => {
  expect(() => takes(({ cty }: { cty: string }) => cty, ["city"])).toThrow(
    'Tool "t": the handler takes "cty", which is not one of its arguments; did you mean city?',
  );
  expect(() => takes(async (_: object, { usr }: { usr: string }) => usr, ["city"])).toThrow(
    "did you mean user?",
  );
  expect(() => takes(({ a: { b }, cty }: { a: { b: string }; cty: string }) => [b, cty], ["a"])).toThrow(
    '"cty"',
  );
});

test("arguments that are not known are not judged", () => {
  const handler = ({ any }: { any: string }): string => any;
  expect(namesOf(z.looseObject({ city: z.string() }), handler)).toBeUndefined();
  expect(namesOf(z.record(z.string(), z.string()), handler)).toBeUndefined();
  expect(
    namesOf(
      z.object({ city: z.string() }).transform(({ city }) => ({ any: city })),
      handler,
    ),
  ).toBeUndefined();
  expect(namesOf({ type: "object", additionalProperties: true }, handler)).toBeUndefined();
  expect(namesOf(z.object({ city: z.string() }), handler)).toEqual(["city"]);
  expect(() => takes(handler, undefined)).not.toThrow();
});

test("an app refuses such handlers of tools, prompts and resources when they are added", () => {
  const app = createApp({ name: "a", version: "1" });
  const args = z.object({ id: z.string() });
  const wrong = (({ idd }: { idd: string }) => idd) as never;
  expect(() => app.tool("t", { input: args }, wrong)).toThrow("did you mean id?");
  expect(() => app.prompt("p", { args }, wrong)).toThrow("did you mean id?");
  expect(() => app.resource("issue://{id}", {}, wrong)).toThrow("did you mean id?");
});
