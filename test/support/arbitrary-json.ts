import * as fc from "fast-check";

export { seededCallTexts, seededJsonTexts } from "./seeded-json.ts";

/**
 * JSON text, not values: random white space, numbers no double can hold, escapes where none are needed,
 * keys that occur twice. Shrinks to a small text.
 *
 * @example
 * fc.assert(fc.property(jsonText(), (text) => accepts(text)));
 */
export function jsonText(): fc.Arbitrary<string> {
  const { value } = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      literal,
      number,
      string,
      tie("array"),
      tie("object"),
    ),
    array: fc
      .tuple(space, fc.array(padded(tie("value")), { maxLength: 5 }))
      .map(([gap, elements]) => `[${elements.length === 0 ? gap : elements.join(",")}]`),
    object: fc
      .tuple(space, fc.array(fc.tuple(padded(string), padded(tie("value"))), { maxLength: 5 }))
      .map(
        ([gap, members]) =>
          `{${members.length === 0 ? gap : members.map((pair) => pair.join(":")).join(",")}}`,
      ),
  }));
  return padded(value);
}

const space: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constant("") },
  { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom(" ", "\t", "\n", "\r"), maxLength: 3 }) },
);

const literal: fc.Arbitrary<string> = fc.constantFrom("true", "false", "null");

const number: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom("-0", "1.0", "1e400", "-1E-400", "12345678901234567890", "0.10", "0e0"),
  fc.stringMatching(/^-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?$/),
);

const piece: fc.Arbitrary<string> = fc.oneof(
  // Any character as it is, or, where JSON wants it so, as JSON.stringify escapes it.
  fc.string({ unit: "binary", minLength: 1, maxLength: 1 }).map((text) => JSON.stringify(text).slice(1, -1)),
  fc.stringMatching(/^\\(["\\/bfnrt]|u[0-9a-fA-F]{4})$/),
);

const string: fc.Arbitrary<string> = fc.string({ unit: piece, maxLength: 12 }).map((text) => `"${text}"`);

function padded(inner: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(space, inner, space).map((parts) => parts.join(""));
}
