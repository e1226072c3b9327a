import {
  closeSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  writeFileSync,
  appendFileSync,
} from "node:fs";
import { RawJson, toOneLine } from "@junctor/core/json";
import { type Items, originKey, type Questions } from "@junctor/core/mcp";
import type { CallEvent } from "@junctor/core/provider";
import { createScrubber } from "@junctor/server/internal";
import { isRecord } from "./print-type.ts";

// A cassette is a file of JSON lines: who the server is, each definition, and each call with its outcome. A call that asked something is
// several lines, one for each round, each with all answers so far. So no line depends on another, and any server can replay them.

/** The lists that are recorded. */
export const recordedParts = ["tools", "prompts", "resources", "templates"] as const;
export type RecordedPart = (typeof recordedParts)[number];

/** Who the server is. */
export interface CassetteHead {
  readonly name: string;
  readonly version: string;
  readonly instructions?: string;
}

/** One round of a call, and how it ended: questions, a result, or a protocol error. */
export interface RecordedCall {
  /** Its method. */
  readonly call: string;
  readonly name: string;
  readonly arguments: RawJson;
  readonly answers: { readonly [key: string]: RawJson };
  readonly events: readonly CallEvent[];
  readonly end:
    | { readonly kind: "asks"; readonly asks: Questions }
    | { readonly kind: "result"; readonly result: RawJson }
    | { readonly kind: "error"; readonly error: RecordedError };
}

export interface RecordedError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export interface Cassette {
  readonly head: CassetteHead;
  readonly lists: { readonly [Part in RecordedPart]: readonly Items[Part][] };
  readonly calls: readonly RecordedCall[];
}

const version = 1;
const maxBytes = 64 * 1024 * 1024;
const maxLines = 100_000;

const byForm = createScrubber({
  patterns: ["aws-key", "github-token", "jwt", "private-key", "bearer", "openai-key"],
});
const secretNames =
  "password|passwd|secret|token|api[_-]?key|authorization|(?:access|refresh|id)[_-]?token|client[_-]?secret|private[_-]?key";
const named = new RegExp(`("(?:${secretNames})"\\s*:\\s*)"(?:[^"\\\\]|\\\\.)*"`, "gi");
/** The same within a text that is JSON itself. */
const namedInText = new RegExp(String.raw`(\\"(?:${secretNames})\\"\s*:\s*)\\"(?:[^"\\]|\\\\.)*\\"`, "gi");

/** JSON without values that are secret by their form, or by the name of their member. */
export function redactJson(json: string): string {
  return byForm(json)
    .replaceAll(named, '$1"[redacted]"')
    .replaceAll(namedInText, String.raw`$1\"[redacted]\"`);
}

/** Writes a cassette line by line, so that a recording survives when the process is killed. */
export class CassetteWriter {
  readonly #file: string;
  readonly #secrets: readonly string[];
  #bytes = 0;
  #lines = 0;
  #isStopped = false;

  /** Throws for a file that is there and is not a cassette. `secrets` are redacted wherever they occur. */
  constructor(file: string, secrets: readonly string[] = []) {
    assertReplaceable(file);
    this.#file = file;
    this.#secrets = secrets
      .filter((secret) => secret.length >= 6)
      .map((secret) => JSON.stringify(secret).slice(1, -1))
      .toSorted((one, other) => other.length - one.length);
    writeFileSync(file, "");
  }

  writeHead({ name, version: serverVersion, instructions }: CassetteHead): void {
    this.#write(JSON.stringify({ cassette: version, name, version: serverVersion, instructions }));
  }

  writeItem(part: RecordedPart, item: Items[RecordedPart]): void {
    const { _meta, ...rest } = item;
    const { [originKey]: _, ...meta } = _meta ?? {};
    const own = Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta };
    this.#write(`{${JSON.stringify(part)}:${JSON.stringify(own)}}`);
  }

  writeCall({ call, name, arguments: args, answers, events, end }: RecordedCall): void {
    const answered = Object.entries(answers).map(
      ([key, raw]) => `${JSON.stringify(key)}:${toOneLine(raw).text}`,
    );
    const members = [
      `"call":${JSON.stringify(call)}`,
      `"name":${JSON.stringify(name)}`,
      `"arguments":${toOneLine(args).text}`,
      ...(answered.length > 0 ? [`"answers":{${answered.join(",")}}`] : []),
      ...(events.length > 0 ? [`"events":${JSON.stringify(events)}`] : []),
      end.kind === "result"
        ? `"result":${toOneLine(end.result).text}`
        : `"${end.kind}":${JSON.stringify(end.kind === "asks" ? end.asks : end.error)}`,
    ];
    this.#write(`{${members.join(",")}}`);
  }

  #write(line: string): void {
    if (this.#isStopped) return;
    const hidden = this.#secrets.reduce(
      (text, secret) => text.replaceAll(secret, "[redacted]"),
      redactJson(line),
    );
    this.#bytes += Buffer.byteLength(hidden) + 1;
    this.#lines++;
    if (this.#bytes > maxBytes || this.#lines > maxLines)
      return this.#stop(`it is full: a cassette has at most 64 MiB and ${maxLines} lines`);
    try {
      appendFileSync(this.#file, `${hidden}\n`);
    } catch (error) {
      this.#stop((error as Error).message);
    }
  }

  /** A recording that cannot go on is no reason to fail the calls that it records. */
  #stop(why: string): void {
    this.#isStopped = true;
    process.emitWarning(`No more is recorded in ${this.#file}: ${why}`);
  }
}

/** Throws for a file that a recording would destroy. */
function assertReplaceable(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined || (found.isFile() && found.size === 0)) return;
  const beginning = Buffer.alloc(16);
  if (found.isFile()) {
    const descriptor = openSync(file, "r");
    readSync(descriptor, beginning);
    closeSync(descriptor);
  }
  if (beginning.toString("latin1").startsWith('{"cassette":')) return;
  throw new TypeError(`${file} is there and is not a cassette: name another file, or remove it`);
}

/** Reads a cassette. Throws a `TypeError` that names the line when it is not one. */
export function readCassette(file: string): Cassette {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found?.isFile() !== true) throw new TypeError(`${file}: there is no such file`);
  if (found.size > maxBytes) throw new TypeError(`${file}: is larger than 64 MiB, which no cassette is`);
  return parseCassette(readFileSync(file), file);
}

export function parseCassette(bytes: Uint8Array, file: string): Cassette {
  const lists = { tools: [], prompts: [], resources: [], templates: [] } as {
    [Part in RecordedPart]: Items[Part][];
  };
  const calls: RecordedCall[] = [];
  let head: CassetteHead | undefined;
  let at = 0;
  for (const line of linesOf(bytes)) {
    at++;
    if (line.length === 0) continue;
    const refuse = (why: string): TypeError => new TypeError(`${file} line ${at}: ${why}`);
    let raw: RawJson;
    try {
      raw = RawJson.parse(line);
    } catch (error) {
      throw refuse(`is not JSON: ${(error as Error).message}`);
    }
    if (head === undefined) {
      head = readHead(raw, refuse);
      continue;
    }
    const part = recordedParts.find((each) => raw.has(each));
    if (raw.has("call")) calls.push(readCall(raw, refuse));
    else if (part !== undefined) (lists[part] as unknown[]).push(readItem(part, raw, refuse));
    else
      throw refuse(`has neither a "call" nor one of ${recordedParts.map((each) => `"${each}"`).join(", ")}`);
  }
  if (head === undefined)
    throw new TypeError(`${file} line 1: is not the beginning of a cassette: ${headExample}`);
  return { head, lists, calls };
}

function* linesOf(bytes: Uint8Array): Generator<Uint8Array> {
  let start = 0;
  for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
    yield bytes.subarray(start, bytes[end - 1] === 0x0d ? end - 1 : end);
    start = end + 1;
  }
  if (start < bytes.length) yield bytes.subarray(start);
}

const headExample = '{"cassette":1,"name":"…","version":"…"}';

type Refuse = (why: string) => TypeError;

function readHead(raw: RawJson, refuse: Refuse): CassetteHead {
  const { cassette, name, version: serverVersion, instructions } = isRecord(raw.value) ? raw.value : {};
  if (cassette === undefined) throw refuse(`is not the beginning of a cassette: ${headExample}`);
  if (cassette !== version)
    throw refuse(`is of version ${JSON.stringify(cassette)}; this Junctor knows ${version}`);
  if (typeof name !== "string" || typeof serverVersion !== "string")
    throw refuse('needs a "name" and a "version"');
  return { name, version: serverVersion, ...(typeof instructions === "string" ? { instructions } : {}) };
}

function readItem(part: RecordedPart, raw: RawJson, refuse: Refuse): unknown {
  const item = raw.at(part)?.value;
  const key = { tools: "name", prompts: "name", resources: "uri", templates: "uriTemplate" }[part];
  if (!isRecord(item) || typeof item[key] !== "string")
    throw refuse(`"${part}" needs an object with a "${key}"`);
  return item;
}

function readCall(raw: RawJson, refuse: Refuse): RecordedCall {
  const [call, name, args, answers, events, asks, result, error] = [
    "call",
    "name",
    "arguments",
    "answers",
    "events",
    "asks",
    "result",
    "error",
  ].map((key) => raw.at(key));
  if (typeof call?.value !== "string" || typeof name?.value !== "string" || args?.kind !== "object")
    throw refuse('a call needs a "call", a "name" and "arguments"');
  const answerKeys = answers === undefined ? [] : Object.keys(isRecord(answers.value) ? answers.value : {});
  return {
    call: call.value,
    name: name.value,
    arguments: args,
    answers: Object.fromEntries(answerKeys.map((key) => [key, answers?.at(key) ?? RawJson.fromText("null")])),
    events: Array.isArray(events?.value) ? (events.value as readonly CallEvent[]) : [],
    end: readEnd(asks, result, error, refuse),
  };
}

function readEnd(
  asks: RawJson | undefined,
  result: RawJson | undefined,
  error: RawJson | undefined,
  refuse: Refuse,
): RecordedCall["end"] {
  if (result?.kind === "object") return { kind: "result", result };
  if (asks?.kind === "object") return { kind: "asks", asks: asks.value as Questions };
  const failed = error?.value;
  if (isRecord(failed) && Number.isInteger(failed["code"]) && typeof failed["message"] === "string")
    return { kind: "error", error: failed as unknown as RecordedError };
  throw refuse('a call needs a "result", "asks", or an "error" with a code and a message');
}
