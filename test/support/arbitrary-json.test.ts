import { expect, test } from "vitest";
import { seededCallTexts, seededJsonTexts } from "./arbitrary-json.ts";

test.each([seededJsonTexts, seededCallTexts])(
  "%o yields the same JSON texts for the same seed",
  (generate) => {
    const texts = [...generate(5, 1000)];
    expect([...generate(5, 1000)]).toEqual(texts);
    expect([...generate(6, 1000)]).not.toEqual(texts);
    for (const text of texts) expect(() => JSON.parse(text) as unknown).not.toThrow();
  },
);
