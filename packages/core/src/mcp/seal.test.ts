import * as fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { growthOf } from "../../../../test/support/growth.ts";
import { createSeal, type Unsealed } from "./seal.ts";

const secret = "0123456789abcdef0123456789abcdef";
const binding = "alice|tools/call|deploy|digest";
const payload = { round: 2, asks: ["name"] };

function reasonOf(opened: Unsealed): string {
  return opened.ok ? "opened" : opened.reason;
}

describe("a sealed token", () => {
  const seal = createSeal({ secret });

  test("opens with the same binding", () => {
    const token = seal.seal(payload, binding, 1_000);
    expect(token).toMatch(/^v1\.[A-Za-z0-9_-]+$/);
    expect(seal.open(token, binding)).toEqual({ ok: true, payload });
  });

  test("opens in another process that has the same secret, given as text or as bytes", () => {
    const token = seal.seal(payload, binding, 60_000);
    expect(createSeal({ secret: Buffer.from(secret) }).open(token, binding)).toEqual({ ok: true, payload });
  });

  test("gives back any JSON value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), (value, bound) => {
        const opened = seal.open(seal.seal(value, bound, 60_000), bound);
        expect(opened).toEqual({ ok: true, payload: JSON.parse(JSON.stringify(value)) as unknown });
      }),
    );
  });

  test("shows nothing of what it holds, and is never the same twice", () => {
    const token = seal.seal("a long and secret text", "b", 1_000);
    expect(Buffer.from(token.slice(3), "base64url").toString("latin1")).not.toContain("secret");
    expect(seal.seal("a long and secret text", "b", 1_000)).not.toBe(token);
  });

  test("does not open with another binding", () => {
    const token = seal.seal(payload, binding, 1_000);
    for (const other of ["", "bob|tools/call|deploy|digest", `${binding} `, binding.slice(1)]) {
      expect(reasonOf(seal.open(token, other))).toBe("forged");
    }
  });

  test("does not open with another secret, nor with the random one of another process", () => {
    const token = seal.seal(payload, binding, 1_000);
    expect(reasonOf(createSeal({ secret: `${secret}!` }).open(token, binding))).toBe("forged");
    expect(reasonOf(createSeal().open(createSeal().seal(1, "b", 1_000), "b"))).toBe("forged");
  });
});

describe("a changed token is refused", () => {
  const seal = createSeal({ secret });
  // Payloads of three lengths: the last character then has zero, two or four bits that mean nothing.
  const tokens = ["", "a", "ab"].map((value) => seal.seal(value, binding, 60_000));

  test("at every single bit of its text", () => {
    for (const token of tokens) {
      for (let index = 0; index < token.length; index += 1) {
        for (let bit = 0; bit < 8; bit += 1) {
          const flipped = String.fromCharCode(token.charCodeAt(index) ^ (1 << bit));
          const changed = token.slice(0, index) + flipped + token.slice(index + 1);
          expect(seal.open(changed, binding).ok, `${index}, bit ${bit}`).toBe(false);
        }
      }
    }
  });

  test("at every character, whatever it becomes", () => {
    const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=. \n\0é";
    for (const token of tokens) {
      for (let index = 0; index < token.length; index += 1) {
        for (const character of characters) {
          if (character === token[index]) continue;
          const changed = token.slice(0, index) + character + token.slice(index + 1);
          expect(seal.open(changed, binding).ok, `${index} to ${character}`).toBe(false);
        }
      }
    }
  });

  test("when a character is added or missing anywhere", () => {
    for (const token of tokens) {
      for (let index = 0; index < token.length; index += 1) {
        expect(seal.open(token.slice(0, index) + token.slice(index + 1), binding).ok).toBe(false);
      }
      for (let index = 0; index <= token.length; index += 1) {
        for (const extra of ["A", "=", "\n"]) {
          expect(seal.open(token.slice(0, index) + extra + token.slice(index), binding).ok).toBe(false);
        }
      }
    }
  });

  test("and anything else that is text is refused without throwing", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((text) => `v1.${text}`),
        ),
        (token) => {
          expect(seal.open(token, binding).ok).toBe(false);
        },
      ),
    );
    expect(reasonOf(seal.open("", binding))).toBe("malformed");
    expect(reasonOf(seal.open("v1.", binding))).toBe("malformed");
    expect(reasonOf(seal.open(`v2.${tokens[0]?.slice(3)}`, binding))).toBe("malformed");
    expect(reasonOf(seal.open(7 as unknown as string, binding))).toBe("malformed");
  });
});

describe("time", () => {
  test("a token opens until its last millisecond, and not after", () => {
    let nowMs = 1_000;
    const seal = createSeal({ secret, now: () => nowMs });
    const token = seal.seal(payload, binding, 500);
    nowMs = 1_499;
    expect(seal.open(token, binding).ok).toBe(true);
    nowMs = 1_500;
    expect(reasonOf(seal.open(token, binding))).toBe("expired");
    expect(reasonOf(seal.open(token, "other"))).toBe("forged");
  });

  test("a wall clock that is set ends no token of this process; tokens of others expire by the wall clock", () => {
    const seal = createSeal({ secret });
    const token = seal.seal(payload, binding, 600_000);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    try {
      expect(seal.open(token, binding).ok).toBe(true);
      const other = createSeal({ secret });
      expect(reasonOf(other.open(token, binding))).toBe("expired");
      const young = other.seal(payload, binding, 600_000);
      vi.setSystemTime(Date.now() - 2 * 3_600_000);
      expect([seal.open(token, binding).ok, seal.open(young, binding).ok]).toEqual([true, true]);
    } finally {
      vi.useRealTimers();
    }
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY])("a time to live of %s is refused", (ttlMs) => {
    expect(() => createSeal().seal(1, "b", ttlMs)).toThrow("finite");
  });
});

describe("rotation", () => {
  const next = "fedcba9876543210fedcba9876543210";

  test("older secrets still open, and only the first one seals", () => {
    const before = createSeal({ secret });
    const during = createSeal({ secrets: [next, secret] });
    const after = createSeal({ secrets: [next] });
    expect(during.open(before.seal(1, "b", 1_000), "b").ok).toBe(true);
    expect(after.open(during.seal(1, "b", 1_000), "b").ok).toBe(true);
    expect(reasonOf(after.open(before.seal(1, "b", 1_000), "b"))).toBe("forged");
  });
});

describe("limits", () => {
  test.each(["short", new Uint8Array(31), ""])("a secret of less than 32 is refused: %j", (weak) => {
    expect(() => createSeal({ secret: weak })).toThrow(
      expect.objectContaining({
        code: "seal.weak_secret",
        message: expect.stringContaining("needs 32") as string,
      }),
    );
    expect(() => createSeal({ secrets: [secret, weak] })).toThrow("needs 32");
  });

  test("no secrets, or both kinds, are refused", () => {
    expect(() => createSeal({ secrets: [] })).toThrow("empty");
    expect(() => createSeal({ secret, secrets: [secret] })).toThrow("not both");
  });

  test("what is not JSON cannot be sealed", () => {
    expect(() => createSeal().seal(undefined, "b", 1)).toThrow(
      expect.objectContaining({ code: "seal.payload" }),
    );
  });

  test("a payload that would not open again for its size is refused", () => {
    const seal = createSeal();
    const fits = seal.seal("a".repeat(780_000), "b", 1_000);
    expect(seal.open(fits, "b").ok).toBe(true);
    expect(() => seal.seal("a".repeat(790_000), "b", 1_000)).toThrow(
      expect.objectContaining({ code: "seal.too_large" }),
    );
  });

  test("an oversize token is refused without reading it", () => {
    const seal = createSeal();
    const [small, large] = [2_000_000, 100_000_000];
    const tokens = new Map([small, large].map((length) => [length, `v1.${"A".repeat(length)}`]));
    const work = (length: number): unknown => seal.open(tokens.get(length)!, "b");
    expect(reasonOf(seal.open(tokens.get(large)!, "b"))).toBe("malformed");
    // Reading it would take fifty times as long.
    expect(growthOf({ small, large, work }, 10)).toBeLessThan(10);
  });
});
