import type { Buffer } from "node:buffer";
import { andThen, settled } from "@junctor/core/async";
import { NotFoundError, RpcError, ToolError } from "@junctor/core/errors";
import { type JsonObject, RawJson } from "@junctor/core/json";
import { type Tool, withMembers } from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import {
  type CallContext,
  emptyListing,
  findIn,
  Listing,
  mapListings,
  type Notice,
  type Operation,
  type Outcome,
  type Provider,
  type Target,
} from "@junctor/core/provider";
import { ExhaustedError } from "@junctor/core/schema";
import { createGlob } from "@junctor/server/internal";
import { cutResult, resultScheme } from "./cut-result.ts";
import { toCharacters } from "./estimate.ts";
import { type KeptResult, KeptResults } from "./kept-results.ts";

/** How long a result may be, and where the rest of a longer one is kept. */
export interface BudgetOptions {
  /**
   * About how many tokens a result may be: of all tools; by glob on their names, `{ "github__*": 4000 }`, the first that fits; or of
   * each by its name. Undefined, and no glob that fits: as many as it is.
   */
  readonly maxResultTokens: ResultCaps;
  /** Where long results are kept; by default a place of this provider's own. */
  readonly kept?: KeptResults;
  /** Part of whom a result is kept for, beside the caller. */
  readonly profile?: string;
  /** The other replicas of the same gateway, which keep results too. */
  readonly elsewhere?: ResultsElsewhere;
  /** Wraps the tool that reads kept results, such as in middleware. */
  readonly own?: (tools: Provider) => Provider;
}

const optionKeys: KeysOf<BudgetOptions> = keys("maxResultTokens kept profile elsewhere own");

/** The name of the tool that reads kept results. */
export const readResultName = "read_result";

const usualLines = 200;
const maxLines = 100_000;
/** What one reading returns where results of this tool have no cap of their own. */
const usualTokens = 4000;

const readResult: Tool = {
  name: readResultName,
  description:
    "Reads more of a long result: some lines, or the lines that match. A line of more than 2,000 bytes counts as several.",
  inputSchema: {
    type: "object",
    properties: {
      id: { type: "string", description: "From the result." },
      from: { type: "integer", minimum: 1, description: "First line; 1." },
      lines: { type: "integer", minimum: 1, description: "How many; 200." },
      match: { type: "string", description: "Only lines with this text, or /regular expression/." },
    },
    required: ["id"],
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
};

/**
 * A provider whose results fit a model. A result below its cap is untouched. Of a longer one the caller gets the beginning and the end,
 * and may read the rest by the tool `read_result` or as a resource, for a while. A cut result has no structured content, so the
 * tools with a cap list no output schema. The same holds for results of tasks.
 *
 * @example
 * const server = createServer(withBudget(registry, { maxResultTokens: 8000 }), { name: "files", version: "1.0.0" });
 */
export function withBudget(inner: Provider, options: BudgetOptions): Provider {
  assertKnownKeys("withBudget", options, optionKeys);
  const { kept = new KeptResults(), own: wrap = (tools: Provider) => tools, elsewhere, profile } = options;
  const capOf = toCapOf(options.maxResultTokens);
  const ownerOf = ({ caller }: CallContext): string => JSON.stringify([caller ?? null, profile ?? null]);
  const reader = createReader({
    open: (id, context) => kept.open(toOwnId(id, elsewhere), ownerOf(context)),
    read: (context, work) => readFor(kept, ownerOf(context), work),
    maxBytes: toCharacters(capOf(readResultName) ?? usualTokens),
  });
  // The replica that took the call has applied the middleware.
  elsewhere?.serve(profile, reader);
  const own = wrap(elsewhere === undefined ? reader : withElsewhere(reader, elsewhere, profile));

  const withoutOutput = (tool: Tool): Tool =>
    tool.outputSchema === undefined || capOf(tool.name) === undefined
      ? tool
      : withMembers(tool, { outputSchema: undefined });
  const lists = mapListings<Tool>((listing) => {
    const others = listing.items.filter(({ name }) => name !== readResultName);
    return listing.with(Object.freeze([...others.map(withoutOutput), readResult]));
  });
  const fit = createCutter(
    (context) => (content, mimeType) => toResultId(kept.keep(content, ownerOf(context), mimeType), elsewhere),
  );
  const capFor = ({ part, name }: Target): number | undefined => (part === "tools" ? capOf(name) : undefined);

  return {
    ...inner,
    list: (part, context) =>
      andThen(settled(inner.list(part, context)), (listing) =>
        part === "tools" ? (lists(listing as Listing<Tool>) as typeof listing) : listing,
      ),
    call: (operation, context) => {
      if (isForReader(operation)) return own.call(operation, context);
      const max = capFor(operation);
      const made = inner.call(operation, context);
      return max === undefined ? made : andThen(settled(made), (outcome) => fit(outcome, max, context));
    },
    find: (part, name, context) => {
      if (part !== "tools") return findIn(inner, part, name, context);
      const found =
        name === readResultName
          ? { key: name, item: readResult }
          : andThen(
              findIn(inner, "tools", name, context),
              (entry) => entry && { ...entry, item: withoutOutput(entry.item) },
            );
      return found as ReturnType<typeof findIn<typeof part>>;
    },
    ...(inner.watch === undefined
      ? {}
      : {
          watch: (target, context, listener) => {
            const max = capFor(target);
            const tell = (notice: Notice): void =>
              listener(
                notice.kind === "task" && max !== undefined
                  ? { ...notice, outcome: fit(notice.outcome, max, context) }
                  : notice,
              );
            return inner.watch?.(target, context, max === undefined ? listener : tell) ?? (() => {});
          },
        }),
    offers: (caller) => {
      const offered = inner.offers(caller);
      return { ...offered, serves: (method) => readerMethods.has(method) || offered.serves(method) };
    },
  };
}

/** Cuts results that are too long. Results of tasks are asked for again and again; each is cut once. */
function createCutter(
  keepFor: (context: CallContext) => Parameters<typeof cutResult>[2],
): (outcome: Outcome, max: number, context: CallContext) => Outcome {
  const cuts = new WeakMap<RawJson, RawJson>();
  return (outcome, max, context) => {
    if (outcome.kind !== "complete") return outcome;
    let result = cuts.get(outcome.result);
    if (result === undefined) {
      const cut = cutResult(outcome.result, max, keepFor(context));
      if (cut === undefined) return outcome;
      cuts.set(outcome.result, (result = RawJson.fromValue(cut)));
    }
    return { ...outcome, result };
  };
}

/** Whether a request is for a kept result. */
function isForReader({ method, name }: Operation): boolean {
  if (method === "tools/call") return name === readResultName;
  return method === "resources/read" && name.startsWith(resultScheme);
}

const readerMethods: ReadonlySet<string> = new Set([
  "tools/list",
  "tools/call",
  "resources/list",
  "resources/templates/list",
  "resources/read",
]);

const readerTools = new Listing<Tool>(Object.freeze([readResult]));

/** Reads kept results: as a tool, and as resources that no list has. */
function createReader({
  open,
  read,
  maxBytes,
}: {
  readonly open: (id: string, context: CallContext) => KeptResult | undefined;
  /** Runs a reading within the time that its caller has. */
  readonly read: <T extends object>(context: CallContext, work: () => T) => T;
  readonly maxBytes: number;
}): Provider {
  const readLinesOf = (args: RawJson, context: CallContext): Outcome => {
    const { id, from, lines, match } = readArguments(args.value);
    const result = open(id, context);
    if (result === undefined) throw goneResult();
    const part = { from, lines, match, maxBytes };
    return text(readPart(result, part, (work) => read(context, work)));
  };
  const readWhole = (uri: string, context: CallContext): Outcome => {
    const result = open(uri.slice(resultScheme.length), context);
    if (result === undefined) throw new NotFoundError("resource", uri);
    const { bytes, mimeType } = result;
    const contents =
      mimeType === undefined
        ? { uri, mimeType: "text/plain", text: bytes.toString("utf8") }
        : { uri, mimeType, blob: bytes.toString("base64") };
    return { kind: "complete", result: RawJson.fromValue({ contents: [contents] }) };
  };
  return {
    list: (part) => (part === "tools" ? (readerTools as Listing<never>) : emptyListing),
    call: ({ method, name, arguments: args }, context) =>
      method === "resources/read" ? readWhole(name, context) : readLinesOf(args, context),
    offers: () => ({ serves: (method) => readerMethods.has(method) }),
  };
}

interface WantedPart {
  readonly from: number;
  readonly lines: number;
  readonly match: ((line: string) => boolean) | undefined;
  readonly maxBytes: number;
}

function readPart(
  { bytes, mimeType, isCut }: KeptResult,
  { from, lines, match, maxBytes }: WantedPart,
  run: (work: () => ReadLines) => ReadLines,
): string {
  if (mimeType !== undefined) return `This is ${mimeType} of ${bytes.length} bytes. Open it as a resource.`;
  const read = run(() =>
    match === undefined
      ? readLines(bytes, from, lines, maxBytes)
      : matchLines(bytes, match, { from, maxBytes }),
  );
  const what = match === undefined ? "no such line" : "no line matches";
  const end = isCut ? "[The end. What came after it was too long to be kept.]" : "[The end.]";
  const rest = read.next === undefined ? end : `[More from line ${read.next}.]`;
  return `${read.text === "" ? `[There is ${what}.]` : read.text}\n${rest}`;
}

/** Reads within the time of an owner, so that one that reads without end, or by a bad pattern, does not hold up others. */
function readFor<T extends object>(kept: KeptResults, owner: string, work: () => T): T {
  try {
    const read = kept.reading.run(owner, work);
    if (typeof read === "object") return read;
    throw refused(`Your last readings took too long. Try again in ${Math.ceil(read / 1000)} s.`);
  } catch (error) {
    if (!(error instanceof ExhaustedError)) throw error;
    throw refused("It took too long. Use plain text, a simpler pattern, or other lines.");
  }
}

function readArguments(args: unknown): Omit<WantedPart, "maxBytes"> & { readonly id: string } {
  const { id, from = 1, lines = usualLines, match } = (args ?? {}) as JsonObject;
  if (typeof id !== "string") throw refused('"id" must be the id that the result gave');
  if (!isNumber(from)) throw refused('"from" must be the number of a line, 1 or more');
  if (!isNumber(lines)) throw refused('"lines" must be a number, 1 or more');
  if (match !== undefined && match !== null && typeof match !== "string")
    throw refused('"match" must be a string');
  const test = typeof match === "string" && match !== "" ? toTest(match) : undefined;
  return { id, from, lines: Math.min(lines, maxLines), match: test };
}

/** Plain text, or `/a regular expression/` with its flags. */
function toTest(match: string): (line: string) => boolean {
  const [, source, flags] = /^\/(.+)\/([imsu]*)$/s.exec(match) ?? [];
  if (source === undefined) return (line) => line.includes(match);
  try {
    const pattern = new RegExp(source, flags);
    return (line) => pattern.test(line);
  } catch {
    throw refused('"match" is not a regular expression. Write plain text without the slashes.');
  }
}

function refused(message: string): ToolError {
  return new ToolError(message, { code: "tool.invalid_arguments" });
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1;
}

function text(value: string): Outcome {
  return { kind: "complete", result: RawJson.fromValue({ content: [{ type: "text", text: value }] }) };
}

/** About how many tokens a result may be: of all tools, by glob on their names (the first that fits), or of each by its name. */
type ResultCaps = number | { readonly [glob: string]: number } | ((tool: string) => number | undefined);

/** The cap of a tool by its name; undefined for a tool whose results may be of any length. */
export type CapOf = (tool: string) => number | undefined;

export function toCapOf(caps: ResultCaps): CapOf {
  if (typeof caps === "function") return caps;
  if (typeof caps === "number") return () => caps;
  const globs = Object.entries(caps).map(([glob, cap]) => [createGlob(glob), cap] as const);
  return (tool) => globs.find(([fits]) => fits(tool))?.[1];
}

/** The replicas of one gateway, each of which keeps the results that it cut. */
export interface ResultsElsewhere {
  /** The id of this replica: 12 hexadecimal digits. Ids of results that it keeps begin with it. */
  readonly here: string;
  /** Reads results of a profile at another replica; undefined when that replica is gone. */
  readonly readerAt: (address: string, profile: string | undefined) => Promise<Provider | undefined>;
  /** Registers the reader of this replica's results of a profile, for the other replicas. */
  readonly serve: (profile: string | undefined, reader: Provider) => void;
}

/** The id of a result that this replica keeps, as callers know it. */
function toResultId(own: string, elsewhere: ResultsElsewhere | undefined): string {
  return elsewhere === undefined ? own : `${elsewhere.here}.${own}`;
}

/** The reverse of {@link toResultId}. An id of another replica stays as it is. */
function toOwnId(id: string, elsewhere: ResultsElsewhere | undefined): string {
  return elsewhere !== undefined && id.startsWith(`${elsewhere.here}.`)
    ? id.slice(elsewhere.here.length + 1)
    : id;
}

/** The name under which a replica offers the results of a profile to the others. */
export function resultsName(profile: string | undefined): string {
  return `${resultScheme}${profile ?? ""}`;
}

/** The profile of such a name: undefined for a name without a profile, false for any other name. */
export function profileOfResults(name: string): string | undefined | false {
  if (!name.startsWith(resultScheme)) return false;
  return name === resultScheme ? undefined : name.slice(resultScheme.length);
}

/** A reader that also reads results that other replicas keep, by passing the request to them. */
function withElsewhere(
  reader: Provider,
  { here, readerAt }: ResultsElsewhere,
  profile: string | undefined,
): Provider {
  const readAt = async (
    address: string,
    operation: Operation,
    context: CallContext,
  ): Promise<Outcome | undefined> => {
    try {
      const other = await readerAt(address, profile);
      return other && (await other.call(operation, context));
    } catch (error) {
      context.signal.throwIfAborted();
      if (error instanceof RpcError) throw error;
      throw new ToolError("The replica that keeps this result cannot be reached now. Try again.");
    }
  };
  return {
    ...reader,
    call: (operation, context) => {
      const { part, name, arguments: args } = operation;
      const isResource = part === "resources";
      const address = addressOf(isResource ? name.slice(resultScheme.length) : args.at("id")?.value);
      if (address === undefined || address === here) return reader.call(operation, context);
      return readAt(address, operation, context).then((outcome) => {
        if (outcome !== undefined) return outcome;
        throw isResource ? new NotFoundError("resource", name) : goneResult();
      });
    },
  };
}

function goneResult(): ToolError {
  return new ToolError("No such result is kept: it is too long ago, or not yours. Call the tool again.");
}

function addressOf(id: unknown): string | undefined {
  return typeof id === "string" ? /^([0-9a-f]{12})\./.exec(id)?.[1] : undefined;
}

/** A line that is longer counts as several: a file may be one line. */
const maxLineBytes = 2000;

/** Some lines of a text. */
interface ReadLines {
  readonly text: string;
  /** The number of the first line that was not read; undefined at the end. */
  readonly next: number | undefined;
}

/** Reads lines, the first of which is 1, until a number of lines or of bytes is reached. At least one is read. */
function readLines(bytes: Buffer, from: number, lines: number, maxBytes: number): ReadLines {
  let start: number | undefined;
  let number = 0;
  for (const [at, end] of spansOf(bytes)) {
    number++;
    if (number < from) continue;
    start ??= at;
    const isFull = number >= from + lines || (end - start > maxBytes && number > from);
    if (isFull) return { text: bytes.toString("utf8", start, at), next: number };
  }
  return { text: start === undefined ? "" : bytes.toString("utf8", start), next: undefined };
}

/** The lines that match, each after its number. */
function matchLines(
  bytes: Buffer,
  matches: (line: string) => boolean,
  at: { from: number; maxBytes: number },
): ReadLines {
  let text = "";
  let number = 0;
  for (const [start, end] of spansOf(bytes)) {
    number++;
    if (number < at.from) continue;
    const line = bytes.toString("utf8", start, end);
    if (!matches(line)) continue;
    if (text.length + line.length > at.maxBytes && text !== "") return { text, next: number };
    text += `${number}: ${line.replace(/\n$/, "")}\n`;
  }
  return { text, next: undefined };
}

/** The beginning and end of each line, its line break included. */
function* spansOf(bytes: Buffer): Generator<readonly [number, number]> {
  let start = 0;
  while (start < bytes.length) {
    const limit = Math.min(bytes.length, start + maxLineBytes);
    let end = start;
    while (end < limit && bytes[end] !== 10) end++;
    if (end < limit) end++;
    // Not in the middle of a character.
    else while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end++;
    yield [start, end];
    start = end;
  }
}
