import type { Client } from "@junctor/client";
import { junctor } from "../../invocation/index.ts";
import {
  clipLine,
  note,
  type ParsedOf,
  print,
  toRows,
  toSafeLine,
  UsageError,
  watchInterrupt,
} from "../terminal/index.ts";
import { createQuestions } from "./questions.ts";
import { parseDestination } from "./target.ts";
import { withClient } from "./with-client.ts";

/** One command that lists things of a server, and reads one of them. */
interface ThingListing<T> {
  readonly name: string;
  /** The word that reads one thing: `read`. */
  readonly verb: string;
  /** What follows the verb, for people. */
  readonly operands: string;
  /** What a list has: `2 resources`. */
  readonly what: readonly [one: string, several: string];
  list(client: Client): Promise<readonly T[]>;
  /** The cells of a thing in the table. */
  toCells(item: T): readonly string[];
  /** Prints one thing. */
  read(client: Client, operands: readonly string[], options: ReadOne): Promise<void>;
}

interface ReadOne {
  readonly isJson: boolean;
  readonly signal: AbortSignal;
}

/** Runs `junctor NAME [URL|NAME]` and `junctor NAME VERB …`. */
export async function runListing<T>(
  parsed: ParsedOf<"resources">,
  listing: ThingListing<T>,
): Promise<number> {
  const { name, verb, operands } = listing;
  const [first, ...rest] = parsed.operands;
  const isRead = first === verb;
  if (isRead && rest.length === 0) throw new UsageError(`write ${junctor(name)} ${verb} ${operands}`);
  if (!isRead && rest[0] !== undefined)
    throw new UsageError(
      `${name} takes one URL, but got ${JSON.stringify(rest[0])} as well; write ${junctor(name)} ${verb} ${operands} --server URL`,
    );
  const named = isRead ? undefined : first;
  if (named !== undefined && parsed.flags.server !== undefined)
    throw new UsageError("name the server once: as the operand or with --server");
  await using destination = await parseDestination(parsed, { server: named ?? parsed.flags.server });
  using interruption = watchInterrupt();
  const isJson = parsed.flags.json;
  const say = (text: string): void => void note(`${text}\n`);
  const handlers = createQuestions({
    isInteractive: process.stdin.isTTY && process.stderr.isTTY,
    say,
    onInterrupt: interruption.interrupt,
  });
  const onWarning = (text: string): void => say(`junctor: ${toSafeLine(text)}`);
  await withClient(destination, interruption, { handlers, onWarning }, async (client, signal) => {
    if (isRead) return listing.read(client, rest, { isJson, signal });
    const listed = await listing.list(client);
    if (isJson) return print(`${JSON.stringify(listed, undefined, 2)}\n`);
    const [one, several] = listing.what;
    const { serverInfo, mode } = await client.agreement();
    const server =
      serverInfo === undefined ? "A server" : toSafeLine(`${serverInfo.name} ${serverInfo.version}`);
    await note(
      `${server}, protocol ${mode.revision}: ${listed.length} ${listed.length === 1 ? one : several}\n`,
    );
    const width = process.stdout.columns ?? Number.POSITIVE_INFINITY;
    const rows = toRows(listed.map((item) => listing.toCells(item)));
    return print(rows.map((row) => `${clipLine(row, width)}\n`).join(""));
  });
  return 0;
}
