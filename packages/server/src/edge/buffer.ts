// The part of node:buffer that we use, for runtimes without it.

type Encoding = "utf8" | "base64" | "base64url" | "hex" | "latin1";

const toText: { readonly [Name in Encoding]: (bytes: Uint8Array) => string } = {
  utf8: (bytes) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes),
  latin1: (bytes) => {
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192)
      text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    return text;
  },
  base64: (bytes) => btoa(toText.latin1(bytes)),
  base64url: (bytes) => toText.base64(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, ""),
  hex: (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(""),
};

const fromBase64 = (text: string): Uint8Array => {
  // As Node reads it: both alphabets, and all other characters are skipped.
  const plain = text
    .replaceAll("-", "+")
    .replaceAll("_", "/")
    .replaceAll(/[^A-Za-z0-9+/]/g, "");
  const whole = plain.length % 4 === 1 ? plain.slice(0, -1) : plain;
  return toBytes.latin1(atob(whole));
};

const toBytes: { readonly [Name in Encoding]: (text: string) => Uint8Array } = {
  utf8: (text) => new TextEncoder().encode(text),
  latin1: (text) => Uint8Array.from(text, (character) => character.charCodeAt(0)),
  base64: fromBase64,
  base64url: fromBase64,
  hex: (text) => Uint8Array.from(text.match(/[0-9a-f]{2}/gi) ?? [], (pair) => Number.parseInt(pair, 16)),
};

/** Bytes with the methods of Node's buffers. The result of `subarray` has them too. */
export class Buffer extends Uint8Array {
  static override from(
    source: string | ArrayLike<number> | Iterable<number> | ArrayBuffer,
    encodingOrOffset?: unknown,
    length?: unknown,
  ): Buffer {
    if (typeof source === "string")
      return viewOf(toBytes[(encodingOrOffset as Encoding | undefined) ?? "utf8"](source));
    if (source instanceof ArrayBuffer)
      return new Buffer(source, encodingOrOffset as number | undefined, length as number | undefined);
    return viewOf(Uint8Array.from(source as Iterable<number>));
  }

  static alloc(size: number): Buffer {
    return new Buffer(size);
  }

  static allocUnsafeSlow(size: number): Buffer {
    return new Buffer(size);
  }

  static byteLength(text: string): number {
    return toBytes.utf8(text).length;
  }

  static concat(pieces: readonly Uint8Array[], length?: number): Buffer {
    const whole = new Buffer(length ?? pieces.reduce((sum, piece) => sum + piece.length, 0));
    let at = 0;
    for (const piece of pieces) {
      const fitting = piece.subarray(0, whole.length - at);
      whole.set(fitting, at);
      at += fitting.length;
    }
    return whole;
  }

  override toString(encoding: Encoding = "utf8", start = 0, end: number = this.length): string {
    return toText[encoding](this.subarray(start, end));
  }

  equals(other: Uint8Array): boolean {
    return this.length === other.length && this.every((byte, at) => byte === other[at]);
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return new Buffer(buffer as ArrayBuffer, byteOffset, byteLength);
}

/** Whether bytes are UTF-8. */
export function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
