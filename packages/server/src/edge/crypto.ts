import { gcm } from "@noble/ciphers/aes.js";
import { hkdf } from "@noble/hashes/hkdf.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { Buffer } from "./buffer.ts";

// The part of node:crypto that we use, for runtimes without it. The Web Crypto of these runtimes is asynchronous, and a seal must be made
// synchronously.

type Encoding = "hex" | "base64url" | "utf8";

const toBytes = (data: Uint8Array | string): Uint8Array =>
  typeof data === "string" ? new TextEncoder().encode(data) : data;

export function randomBytes(size: number): Buffer {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(size)));
}

interface Hash {
  update(data: Uint8Array | string): Hash;
  digest(encoding: Encoding): string;
}

export function createHash(_algorithm: "sha256"): Hash {
  const hash = sha256.create();
  const own: Hash = {
    update: (data) => {
      hash.update(toBytes(data));
      return own;
    },
    digest: (encoding) => Buffer.from(hash.digest()).toString(encoding),
  };
  return own;
}

export function hkdfSync(
  _algorithm: "sha256",
  secret: Uint8Array | string,
  salt: string,
  info: string,
  length: number,
): Uint8Array {
  return hkdf(sha256, toBytes(secret), toBytes(salt), toBytes(info), length);
}

const tagBytes = 16;

/** AES-256-GCM of one piece: `final` returns all of the output. */
class Gcm {
  readonly #key: Uint8Array;
  readonly #nonce: Uint8Array;
  readonly #opens: boolean;
  #aad: Uint8Array | undefined;
  #data: Uint8Array = new Uint8Array();
  #tag: Uint8Array = new Uint8Array();

  constructor(key: Uint8Array, nonce: Uint8Array, opens: boolean) {
    this.#key = key;
    this.#nonce = nonce;
    this.#opens = opens;
  }

  setAAD(aad: Uint8Array): void {
    this.#aad = aad;
  }

  setAuthTag(tag: Uint8Array): void {
    this.#tag = tag;
  }

  getAuthTag(): Buffer {
    return Buffer.from(this.#tag);
  }

  update(data: Uint8Array | string, _inputEncoding?: unknown, encoding?: Encoding): Buffer | string {
    this.#data = toBytes(data);
    return encoding === undefined ? Buffer.alloc(0) : "";
  }

  final(encoding?: Encoding): Buffer | string {
    const cipher = gcm(this.#key, this.#nonce, this.#aad);
    if (this.#opens) {
      const opened = Buffer.from(cipher.decrypt(Buffer.concat([this.#data, this.#tag])));
      return encoding === undefined ? opened : opened.toString(encoding);
    }
    const sealed = cipher.encrypt(this.#data);
    this.#tag = sealed.subarray(-tagBytes);
    return Buffer.from(sealed.subarray(0, -tagBytes));
  }
}

export const createCipheriv = (_algorithm: "aes-256-gcm", key: Uint8Array, nonce: Uint8Array): Gcm =>
  new Gcm(key, nonce, false);
export const createDecipheriv = (_algorithm: "aes-256-gcm", key: Uint8Array, nonce: Uint8Array): Gcm =>
  new Gcm(key, nonce, true);
