import { Buffer as NodeBuffer } from "node:buffer";
import nodeCrypto from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Buffer, isUtf8 } from "./buffer.ts";
import { createCipheriv, createDecipheriv, createHash, hkdfSync } from "./crypto.ts";
import { ajvOf } from "./interpreter.ts";

describe("bytes are as those of Node", () => {
  test.each(["utf8", "latin1", "base64", "base64url", "hex"] as const)("written as %s", (encoding) => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        expect(Buffer.from(bytes).toString(encoding)).toBe(NodeBuffer.from(bytes).toString(encoding));
      }),
    );
  });

  test.each(["utf8", "base64", "base64url", "hex"] as const)("read from %s", (encoding) => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const text = NodeBuffer.from(bytes).toString(encoding);
        expect([...Buffer.from(text, encoding)]).toEqual([...NodeBuffer.from(text, encoding)]);
      }),
    );
  });

  test("put together, cut and compared", () => {
    const whole = Buffer.concat([Buffer.from("Hello, "), Buffer.from("wörld")]);
    expect(whole.toString()).toBe("Hello, wörld");
    expect((whole.subarray(7) as Buffer).toString("utf8", 0, 3)).toBe("wö");
    expect(whole.equals(NodeBuffer.from("Hello, wörld"))).toBe(true);
    expect(Buffer.concat([Buffer.from("abc")], 2).toString()).toBe("ab");
    expect(Buffer.byteLength("wörld")).toBe(6);
    expect([isUtf8(Buffer.from("ö")), isUtf8(Buffer.from([0xff]))]).toEqual([true, false]);
  });
});

describe("a seal opens on either side", () => {
  const secret = "a secret of at least thirty-two characters";
  const key = new Uint8Array(nodeCrypto.hkdfSync("sha256", secret, "", "junctor/seal/v1", 32));
  const nonce = new Uint8Array(12).fill(7);
  const text = "the state of a call";
  type Cipher = Pick<nodeCrypto.CipherGCM, "setAAD" | "getAuthTag"> & {
    update(data: string, encoding: "utf8"): Uint8Array | string;
    final(): Uint8Array | string;
  };
  const seal = (make: (algorithm: "aes-256-gcm", key: Uint8Array, nonce: Uint8Array) => unknown): string => {
    const cipher = make("aes-256-gcm", key, nonce) as Cipher;
    cipher.setAAD(NodeBuffer.from("caller"));
    const pieces = [cipher.update(text, "utf8"), cipher.final()] as Uint8Array[];
    return NodeBuffer.concat([...pieces, cipher.getAuthTag()]).toString("hex");
  };

  test("as its key and its bytes are the same", () => {
    expect(hkdfSync("sha256", secret, "", "junctor/seal/v1", 32)).toEqual(key);
    expect(seal(createCipheriv)).toBe(seal(nodeCrypto.createCipheriv));
    expect(createHash("sha256").update("a").update("b").digest("base64url")).toBe(
      nodeCrypto.createHash("sha256").update("ab").digest("base64url"),
    );
  });

  test("and not when it was changed", () => {
    const open = (token: Buffer): string => {
      const decipher = createDecipheriv("aes-256-gcm", key, nonce);
      decipher.setAAD(NodeBuffer.from("caller"));
      decipher.setAuthTag(token.subarray(-16));
      return (
        String(decipher.update(token.subarray(0, -16), undefined, "utf8")) + String(decipher.final("utf8"))
      );
    };
    const token = Buffer.from(seal(nodeCrypto.createCipheriv), "hex");
    expect(open(token)).toBe(text);
    token[0] = (token[0] ?? 0) ^ 1;
    expect(() => open(token)).toThrow("tag");
  });
});

describe("the interpreter of JSON Schema", () => {
  const create = () => {
    const Interpreter = ajvOf["2020-12"];
    if (Interpreter === undefined) throw new Error("The dialect is missing");
    return new Interpreter({ allErrors: true });
  };
  const faultsOf = (schema: object, value: unknown): unknown => {
    const validate = create().compile(schema);
    return validate(value)
      ? []
      : validate.errors?.map(({ instancePath, message }) => `${instancePath} ${message}`);
  };

  test("says where a value does not fit", () => {
    const schema = {
      type: "object",
      properties: { at: { type: "object", properties: { x: { type: "number" } } } },
      required: ["at", "name"],
    };
    expect(faultsOf(schema, { at: { x: 1 }, name: "a" })).toEqual([]);
    expect(faultsOf(schema, { at: { x: "1" } })).toMatchInlineSnapshot(`
      [
        " Instance does not have required property "name"",
        "/at/x Instance type "string" is invalid. Expected "number"",
      ]
    `);
  });

  test("takes patterns as other languages write them", () => {
    expect(faultsOf({ type: "string", pattern: "^a\\_b$" }, "a_b")).toEqual([]);
    expect(faultsOf({ type: "string", pattern: "^a\\_b$" }, "ab")).toHaveLength(1);
  });

  test("refuses a type that does not exist", () => {
    const meta = create();
    expect(meta.validate("", { type: "object", properties: { a: { type: "strin" } } })).toBe(false);
    expect(meta.errors).toMatchObject([{ instancePath: "/properties/a/type" }]);
    expect(meta.validate("", { type: ["string", "null"] })).toBe(true);
  });
});
