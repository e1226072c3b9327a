import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";

/** Marks the facts that replicas write to an engine, so that those of other programs are not believed. */
export interface FactSigner {
  /** The text with a signature, which is good for this place alone: a key, a channel. */
  sign(place: string, text: string): string;
  /** The text without its signature; undefined when no process with one of the secrets signed it for this place. */
  open(place: string, signed: string): string | undefined;
}

/** The characters that a signature adds to a text. */
export const signatureLength = 44;

/** Signs with the first secret, and accepts the signatures of all of them. */
export function createFactSigner(secrets: readonly string[]): FactSigner {
  const keys = secrets.map((secret) => Buffer.from(hkdfSync("sha256", secret, "", "junctor/store/v1", 32)));
  const [first] = keys;
  if (first === undefined) throw new TypeError("a signer needs a secret");
  return {
    sign: (place, text) => `${signatureOf(first, place, text).toString("base64url")}.${text}`,
    open: (place, signed) => {
      if (signed[signatureLength - 1] !== ".") return undefined;
      const given = Buffer.from(signed.slice(0, signatureLength - 1), "base64url");
      const text = signed.slice(signatureLength);
      const isGood = keys.some((key) => {
        const expected = signatureOf(key, place, text);
        return expected.length === given.length && timingSafeEqual(expected, given);
      });
      return isGood ? text : undefined;
    },
  };
}

function signatureOf(key: Buffer, place: string, text: string): Buffer {
  return createHmac("sha256", key)
    .update(JSON.stringify([place, text]))
    .digest();
}
