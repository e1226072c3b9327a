import { createHash, randomBytes } from "node:crypto";

/** What the lines of an audit file are chained by. Each process that opens a file has a chain of its own in it. */
export interface ChainLink {
  readonly chain: string;
  /** Counts the lines of one chain, from 1. */
  readonly seq: number;
  /** The hash of the line before it in the chain; of the first, that of the last line the file had. */
  readonly previous: string;
  readonly hash: string;
}

/** A line has at most so many bytes more than its record. */
export const linkBytes = 256;

/** The hash that comes before the first line of all. */
export const noHash: string = "0".repeat(64);

const hashMember = /^(.*),"hash":"([0-9a-f]{64})"\}$/s;

/** Chains lines: each has a hash of its own text, and the hash of the line before it is part of that text. */
export class Chain {
  readonly id: string = randomBytes(8).toString("hex");
  /** How many lines there are. */
  seq = 0;
  /** Of the last line. */
  hash: string;

  constructor(previous: string) {
    this.hash = previous;
  }

  /** The next line, made of a record's JSON text. */
  link(record: string): string {
    const own = `"chain":"${this.id}","seq":${++this.seq},"previous":"${this.hash}"`;
    const body = `${record.slice(0, -1)},${own}`;
    this.hash = hashOf(body);
    return `${body},"hash":"${this.hash}"}\n`;
  }
}

export function hashOf(text: string | Uint8Array): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The hash by which a chain continues after a line. A line that has none, of an earlier version, is hashed as a whole. */
export function hashAfter(line: string): string {
  return hashMember.exec(line)?.[2] ?? hashOf(line);
}

/** A line as it was read: a record with its link, one without a link, or no record at all. */
type ReadLine =
  | {
      readonly kind: "linked";
      readonly link: ChainLink;
      readonly record: { readonly [key: string]: unknown };
    }
  | { readonly kind: "unlinked" }
  | { readonly kind: "edited" }
  | { readonly kind: "no_record" };

/** Reads a line, and checks that its text has its hash. */
export function readLine(line: string): ReadLine {
  const record = toRecord(line);
  if (record === undefined) return { kind: "no_record" };
  const { chain, seq, previous, hash } = record;
  if (chain === undefined && previous === undefined && hash === undefined) return { kind: "unlinked" };
  const [, body = ""] = hashMember.exec(line) ?? [];
  const isWhole =
    typeof chain === "string" &&
    typeof seq === "number" &&
    typeof previous === "string" &&
    hashOf(body) === hash;
  return isWhole ? { kind: "linked", link: { chain, seq, previous, hash }, record } : { kind: "edited" };
}

function toRecord(line: string): { readonly [key: string]: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(line);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as { readonly [key: string]: unknown }) : undefined;
  } catch {
    return undefined;
  }
}
