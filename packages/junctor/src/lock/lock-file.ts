import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import type { ListPart } from "@junctor/core/fit";
import { isJsonObject, type JsonObject } from "@junctor/core/json";
import { readSmallFile, writePrivateFile } from "../config/index.ts";
import { junctor } from "../invocation/index.ts";

/** The kinds of things that a lock remembers. */
export type LockPart = ListPart | "instructions";

/**
 * The definitions of one server that a person approved: for each part by the server's own names or URIs. An array has the
 * forms of one definition for callers of different eras.
 */
export type Approved = ReadonlyMap<LockPart, ReadonlyMap<string, unknown>>;

/** The approved definitions by server. */
export type Lock = ReadonlyMap<string, Approved>;

/** The result of reading a lock file. A `damaged` file may be replaced, an `unusable` one must not be. */
type LockState =
  | { readonly kind: "read"; readonly lock: Lock; readonly text: string }
  | { readonly kind: "missing" | "damaged" | "unusable"; readonly message: string };

/** In the order in which people are shown them. */
export const lockParts: readonly LockPart[] = ["instructions", "tools", "prompts", "resources", "templates"];

/** Increment it when the meaning of the file changes. */
const version = 1;
/** Room for 10,000 tools with long schemas. */
const maxBytes = 64 * 1024 * 1024;

/** Reads a lock file. */
export function readLock(file: string): LockState {
  let text: string;
  try {
    text = readSmallFile(file, maxBytes);
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT")
      return {
        kind: "missing",
        message: `does not exist: ${junctor("trust")} lists what servers offer, and writes it`,
      };
    const reason = error instanceof RangeError ? "it is too large" : code || message;
    return { kind: "unusable", message: `cannot be read (${reason}): restore it, or name another file` };
  }
  return parseLock(text);
}

/** Replaces a lock file as a whole: a full disk or a kill leaves the old one. Throws the system's error. */
export function writeLock(file: string, lock: Lock): void {
  writePrivateFile(toTarget(file), formatLock(lock), 0o644);
}

/** The text of a lock file: keys are sorted, so that the same lock is the same text. */
export function formatLock(lock: Lock): string {
  const servers = toServers(lock);
  return `${toCanonicalJson({ version, integrity: integrityOf(servers), servers }, "\n")}\n`;
}

/** JSON text that is the same for the same value: keys are sorted. `lineBreak` begins each line of an indented text. */
export function toCanonicalJson(value: unknown, lineBreak?: string): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const isArray = Array.isArray(value);
  const inner = lineBreak === undefined ? undefined : `${lineBreak}  `;
  const members = isArray
    ? value.map((entry) => toCanonicalJson(entry, inner))
    : Object.keys(value)
        .toSorted()
        .map((key) => {
          const member = toCanonicalJson((value as JsonObject)[key], inner);
          return `${JSON.stringify(key)}:${inner === undefined ? "" : " "}${member}`;
        });
  const [open, close] = isArray ? "[]" : "{}";
  if (members.length === 0) return `${open}${close}`;
  return `${open}${inner ?? ""}${members.join(`,${inner ?? ""}`)}${lineBreak ?? ""}${close}`;
}

/** A hash that is the same for definitions that say the same. */
export function digestOf(canonicalJson: string): string {
  return createHash("sha256").update(canonicalJson).digest("base64");
}

function parseLock(text: string): LockState {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return damaged("is not JSON");
  }
  if (!isJsonObject(value) || typeof value["version"] !== "number")
    return damaged("is not a lock of Junctor");
  const { version: found, integrity, servers } = value;
  if (found > version) {
    const message = `has version ${found}, and this Junctor knows ${version}: update Junctor`;
    return { kind: "unusable", message };
  }
  const lock = isJsonObject(servers) ? toLock(servers) : undefined;
  if (lock === undefined) return damaged("has no definitions where they belong");
  if (integrity !== integrityOf(servers)) return damaged(`was edited since ${junctor("trust")} wrote it`);
  return { kind: "read", lock, text };
}

function damaged(what: string): LockState {
  return {
    kind: "damaged",
    message: `${what}: restore it, or approve everything again with ${junctor("trust")}`,
  };
}

function integrityOf(servers: unknown): string {
  return `sha256-${digestOf(toCanonicalJson(servers))}`;
}

/** The member `servers` of the file. Instructions are one text, so they have no names. */
function toServers(lock: Lock): unknown {
  const toMembers = (approved: Approved): [string, unknown][] =>
    lockParts.flatMap((part): [string, unknown][] => {
      const things = approved.get(part);
      if (things === undefined || things.size === 0) return [];
      return [[part, part === "instructions" ? things.get("") : Object.fromEntries(things)]];
    });
  const servers = Array.from(lock, ([server, approved]) => [server, toMembers(approved)] as const);
  const filled = servers.filter(([, members]) => members.length > 0);
  return Object.fromEntries(filled.map(([server, members]) => [server, Object.fromEntries(members)]));
}

/** The lock that the member `servers` describes; undefined when it is not one. */
function toLock(servers: JsonObject): Lock | undefined {
  const lock = new Map<string, Approved>();
  for (const [server, parts] of Object.entries(servers)) {
    if (!isJsonObject(parts)) return undefined;
    const approved = new Map<LockPart, ReadonlyMap<string, unknown>>();
    for (const [key, things] of Object.entries(parts)) {
      const part = lockParts.find((each) => each === key);
      if (part === undefined) return undefined;
      if (part === "instructions" ? typeof things !== "string" : !isJsonObject(things)) return undefined;
      const named = part === "instructions" ? [["", things] as const] : Object.entries(things as JsonObject);
      approved.set(part, new Map(named));
    }
    lock.set(server, approved);
  }
  return lock;
}

/** The file behind a link: the link stays. */
function toTarget(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}
