import type nodeCrypto from "node:crypto";
import { systemClock } from "../async/index.ts";
import { SealError } from "../errors/index.ts";

/** What opening a token found. Tell the other side no more than that it was refused. */
export type Unsealed =
  | { readonly ok: true; readonly payload: unknown }
  | { readonly ok: false; readonly reason: "malformed" | "forged" | "expired" };

/** Keeps small state in the hands of others: they can neither read it, nor change it, nor use it for anything else. */
export interface Seal {
  /**
   * Turns a JSON value into a token that opens only with the same binding and only until `ttlMs` from now.
   *
   * @throws {@link SealError} when the payload is not JSON or the token would pass 1 MiB.
   */
  seal(payload: unknown, binding: string, ttlMs: number): string;
  /** Opens a token. Never throws, whatever it is given. A token may be opened again: single use needs storage. */
  open(token: string, binding: string): Unsealed;
}

export interface SealOptions {
  /** At least 32 bytes, or 32 characters. Default: random, so tokens die with the process and no replica shares them. */
  readonly secret?: Uint8Array | string;
  /** For rotation, instead of `secret`: the first seals, all of them open. */
  readonly secrets?: readonly (Uint8Array | string)[];
  /**
   * The time by which tokens expire. Without it, a seal judges its own tokens by a clock that does not jump, and those of
   * other processes by the wall clock.
   */
  readonly now?: () => number;
}

const prefix = "v1.";
/** A gateway seals what a server sealed: several of these must fit into each other, and all of it into a request's body. */
const maxTokenLength = 1024 * 1024;
const minSecretLength = 32;
const nonceBytes = 12;
const tagBytes = 16;

/** Loaded with the first seal: most servers on stdio never seal anything, and it is a fifth of what they would load. */
const loadCrypto = (): typeof nodeCrypto => process.getBuiltinModule("node:crypto");

/**
 * Creates a seal: AES-256-GCM under a key derived by HKDF, the binding authenticated along with the payload. A token is
 * `v1.` and the base64url of nonce, ciphertext and tag. Nonces are random, so one secret is good for 2^32 tokens (NIST
 * SP 800-38D, section 8.3).
 *
 * @throws {@link SealError} `seal.weak_secret`.
 * @example
 * const seal = createSeal({ secret: process.env.JUNCTOR_SECRET });
 * const token = seal.seal({ round: 1 }, "alice|tools/call|deploy", 600_000);
 * seal.open(token, "alice|tools/call|deploy"); // { ok: true, payload: { round: 1 } }
 */
export function createSeal(options: SealOptions = {}): Seal {
  const { now = systemClock.now, now: date = systemClock.date } = options;
  let derived: Keys | undefined;
  const keys = (): Keys => (derived ??= deriveKeys(options));
  // Refuses a wrong secret at once. A random one is made with the first token.
  if (options.secret !== undefined || options.secrets !== undefined) keys();

  return {
    seal(payload, binding, ttlMs) {
      const { maker, current } = keys();
      const nonce = loadCrypto().randomBytes(nonceBytes);
      const cipher = loadCrypto().createCipheriv("aes-256-gcm", current, nonce, { authTagLength: tagBytes });
      cipher.setAAD(toAad(binding));
      const sealed = Buffer.concat([
        nonce,
        cipher.update(toText(payload, { e: date() + ttlMs, i: maker, m: now() + ttlMs }), "utf8"),
        cipher.final(),
        cipher.getAuthTag(),
      ]);
      const token = prefix + sealed.toString("base64url");
      if (token.length > maxTokenLength) {
        throw new SealError(
          "seal.too_large",
          `The sealed state is ${token.length} bytes. The limit is ${maxTokenLength}. Keep the data on the server and put its key ` +
            "into the state.",
        );
      }
      return token;
    },

    open(token, binding) {
      const bytes = decode(token);
      if (bytes === undefined) return { ok: false, reason: "malformed" };
      const aad = toAad(binding);
      const { maker, current, older } = keys();
      for (const key of [current, ...older]) {
        const text = decrypt(bytes, key, aad);
        if (text === undefined) continue;
        const { e, i, m = e, p: payload } = JSON.parse(text) as SealedText;
        const isGood = i === maker ? now() < m : date() < e;
        return isGood ? { ok: true, payload } : { ok: false, reason: "expired" };
      }
      return { ok: false, reason: "forged" };
    },
  };
}

/** When a token expires: by the wall clock, and by the clock of the seal that made it. */
interface Expiry {
  readonly e: number;
  /** The seal that made it. */
  readonly i?: string;
  readonly m?: number;
}

/** The content of a token. */
interface SealedText extends Expiry {
  readonly p: unknown;
}

/** What a seal works with. */
interface Keys {
  /** Marks the tokens of this seal, whose time its own clock can tell. */
  readonly maker: string;
  readonly current: Buffer;
  readonly older: readonly Buffer[];
}

function deriveKeys(options: SealOptions): Keys {
  const [current, ...older] = secretsOf(options).map(deriveKey);
  if (current === undefined)
    throw new SealError("seal.weak_secret", "`secrets` is empty. Give at least one secret.");
  return { maker: loadCrypto().randomBytes(6).toString("base64url"), current, older };
}

function secretsOf({ secret, secrets }: SealOptions): readonly (Uint8Array | string)[] {
  if (secret !== undefined && secrets !== undefined) {
    throw new SealError("seal.weak_secret", "Give `secret` or `secrets`, not both.");
  }
  return secrets ?? [secret ?? loadCrypto().randomBytes(minSecretLength)];
}

function deriveKey(secret: Uint8Array | string): Buffer {
  if (secret.length < minSecretLength) {
    const unit = typeof secret === "string" ? "characters" : "bytes";
    throw new SealError(
      "seal.weak_secret",
      `The secret has ${secret.length} ${unit} and needs ${minSecretLength}. Make one with: openssl rand -base64 32`,
    );
  }
  return Buffer.from(loadCrypto().hkdfSync("sha256", secret, "", "junctor/seal/v1", 32));
}

function toText(payload: unknown, expiry: Expiry): string {
  if (!Number.isFinite(expiry.e))
    throw new SealError("seal.payload", "The time to live must be a finite number.");
  const text: string | undefined = JSON.stringify(payload);
  if (text === undefined)
    throw new SealError("seal.payload", `A ${typeof payload} cannot be sealed: it is not JSON.`);
  return `${JSON.stringify(expiry).slice(0, -1)},"p":${text}}`;
}

function toAad(binding: string): Buffer {
  return Buffer.from(`${prefix}${binding}`, "utf8");
}

function decode(token: string): Buffer | undefined {
  // The length first: nothing of an oversize token is worth reading.
  if (typeof token !== "string" || token.length > maxTokenLength || !token.startsWith(prefix))
    return undefined;
  const text = token.slice(prefix.length);
  const bytes = Buffer.from(text, "base64url");
  // The decoder takes padding, foreign characters and stray trailing bits; only one spelling of a token may open.
  if (bytes.length < nonceBytes + tagBytes || bytes.toString("base64url") !== text) return undefined;
  return bytes;
}

function decrypt(bytes: Buffer, key: Buffer, aad: Buffer): string | undefined {
  const decipher = loadCrypto().createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceBytes), {
    authTagLength: tagBytes,
  });
  decipher.setAAD(aad);
  decipher.setAuthTag(bytes.subarray(-tagBytes));
  const text = decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, "utf8");
  try {
    return text + decipher.final("utf8");
  } catch {
    // The tag does not fit: another key, another binding, or a changed token. They cannot be told apart.
    return undefined;
  }
}
