import { RpcError } from "../errors/rpc-error.ts";
import type { RawJson } from "../json/raw.ts";
import { metaKeys } from "./meta-keys.ts";
import { type ClientCapabilities, type Implementation, isLogLevel, type LogLevel } from "./types.ts";

/** What a modern request says about its sender. It holds for that request only and is never remembered. */
export interface Envelope {
  /** As claimed; whether we serve it is decided by `decideEra`. */
  readonly protocolVersion: string;
  readonly capabilities: ClientCapabilities;
  readonly clientInfo: Implementation | undefined;
  readonly logLevel: LogLevel | undefined;
}

/** Whether the params claim a protocol revision, which is what makes a message modern. */
export function hasClaim(params: RawJson | undefined): boolean {
  return metaOf(params)?.has(metaKeys.protocolVersion) === true;
}

/** The `_meta` member, where it is an object. */
export function metaOf(params: RawJson | undefined): RawJson | undefined {
  const meta = params?.at("_meta");
  return meta?.kind === "object" ? meta : undefined;
}

/**
 * Envelopes by how they were spelled: a client says the same of itself in every request, and parsing it is half the work.
 * An envelope is found by the members it is made from; where `_meta` holds nothing else, also by the text of all of it,
 * which is quicker. A trace or a progress token, which differs from call to call, is part of neither.
 */
const known = new Map<string, Envelope>();
const maxKnown = 256;
const maxKnownLength = 2048;

/** Reads the envelope of a modern request. Throws `-32602` naming the key that is missing or malformed. */
export function parseEnvelope(params: RawJson | undefined): Envelope {
  const meta = metaOf(params);
  const text = meta?.has("progressToken") === false ? meta.text : undefined;
  const same = text === undefined ? undefined : known.get(text);
  if (same !== undefined) return same;
  const spelling = spell(meta);
  let envelope = known.get(spelling);
  if (envelope === undefined) {
    envelope = readEnvelope(params, meta);
    keep(spelling, envelope);
  }
  if (meta !== undefined && text?.length === bareLength(meta, spelling)) keep(text, envelope);
  return envelope;
}

function keep(spelling: string, envelope: Envelope): void {
  if (spelling.length > maxKnownLength) return;
  if (known.size >= maxKnown) known.clear();
  known.set(spelling, envelope);
}

/** The members an envelope is made from, as they were spelled. No JSON begins with a comma, so this is no whole `_meta`. */
function spell(meta: RawJson | undefined): string {
  return envelopeKeys.reduce((spelling, key) => `${spelling},${meta?.textOf(key) ?? ""}`, "");
}

/** How long `_meta` is when it holds the members of its envelope, no white space and nothing else. */
function bareLength(meta: RawJson, spelling: string): number {
  // The spelling has a comma for each key, and the text one character more for its two braces.
  const valuesAndBraces = spelling.length - envelopeKeys.length + 1;
  return envelopeKeys.reduce(
    (length, key) => (meta.has(key) ? length + key.length + '"":,'.length : length),
    valuesAndBraces,
  );
}

const envelopeKeys = [
  metaKeys.protocolVersion,
  metaKeys.clientCapabilities,
  metaKeys.clientInfo,
  metaKeys.logLevel,
];

function readEnvelope(params: RawJson | undefined, meta: RawJson | undefined): Envelope {
  const protocolVersion = parseClaim(params);
  const capabilities = required(meta, metaKeys.clientCapabilities);
  if (capabilities.kind !== "object") throw malformed(metaKeys.clientCapabilities, "an object; {} says none");
  const clientInfo = meta?.at(metaKeys.clientInfo);
  if (clientInfo !== undefined && !isImplementation(clientInfo.value)) {
    throw malformed(metaKeys.clientInfo, "an object with the strings name and version");
  }
  const logLevel = meta?.at(metaKeys.logLevel)?.value;
  if (logLevel !== undefined && !isLogLevel(logLevel))
    throw malformed(metaKeys.logLevel, "a log level such as info");
  // Frozen to the ground: it will be shown to others who said the same of themselves.
  return deepFreeze({
    protocolVersion,
    capabilities: capabilities.value as ClientCapabilities,
    clientInfo: clientInfo?.value as Implementation | undefined,
    logLevel,
  });
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(deepFreeze);
    Object.freeze(value);
  }
  return value;
}

/** The revision a modern message says it is written in. Throws `-32602` when it says none, or not as a string. */
export function parseClaim(params: RawJson | undefined): string {
  const version = required(metaOf(params), metaKeys.protocolVersion);
  if (version.kind !== "string") throw malformed(metaKeys.protocolVersion, "a string such as 2026-07-28");
  return version.value as string;
}

/** Whether a value is an object with the strings `name` and `version`. */
export function isImplementation(value: unknown): value is Implementation {
  if (typeof value !== "object" || value === null) return false;
  const { name, version } = value as Record<string, unknown>;
  return typeof name === "string" && typeof version === "string";
}

function required(meta: RawJson | undefined, key: string): RawJson {
  const value = meta?.at(key);
  if (value === undefined) {
    throw new RpcError(
      "rpc.invalid_params",
      `Invalid params: _meta["${key}"] is missing; modern requests carry it`,
    );
  }
  return value;
}

function malformed(key: string, expected: string): RpcError {
  return new RpcError("rpc.invalid_params", `Invalid params: _meta["${key}"] must be ${expected}`);
}
