import { expect, test } from "vitest";
import { JsonError } from "./setup-errors.ts";

test("a JsonError keeps its facts as fields and puts them into the message", () => {
  const error = new JsonError("json.trailing", 17, "Expected the end of the JSON text, found ‘x’");
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({ name: "JsonError", code: "json.trailing", offset: 17, index: undefined });
  expect(error.message).toBe(
    "Expected the end of the JSON text, found ‘x’ (byte 17). Send exactly one JSON value and nothing after it.",
  );
});
