import { Buffer } from "node:buffer";
import { expect, test } from "vitest";
import { LineCutter, maxHeldBytes } from "./lines.ts";

test("gives whole lines, however the stream is split", () => {
  const text = '{"a":1}\n\n{"ü":2}\r\n{"rest"';
  const bytes = Buffer.from(text);
  for (let at = 0; at <= bytes.length; at++) {
    const cutter = new LineCutter();
    const cuts = [...cutter.push(bytes.subarray(0, at)), ...cutter.push(bytes.subarray(at))];
    expect(cuts.map(({ bytes: each }) => each.toString())).toEqual(['{"a":1}\n', "\n", '{"ü":2}\r\n']);
    expect(cutter.flush()?.toString()).toBe('{"rest"');
    expect(cutter.flush()).toBeUndefined();
  }
});

test("a line that is too long is given in pieces, and the next one is whole again", () => {
  const cutter = new LineCutter();
  const [piece] = cutter.push(Buffer.alloc(maxHeldBytes + 1, "a"));
  expect(piece).toMatchObject({ isWhole: false });
  expect(cutter.isInLongLine).toBe(true);
  const cuts = cutter.push(Buffer.from("aa\nnext\n"));
  expect(cuts.map(({ isWhole }) => isWhole)).toEqual([false, true]);
  expect(cutter.isInLongLine).toBe(false);
});
