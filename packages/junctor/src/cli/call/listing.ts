import { Buffer } from "node:buffer";
import type { Client } from "@junctor/client";
import type { PromptMessage } from "@junctor/core/mcp";
import { junctor } from "../../invocation/index.ts";
import {
  clipLine,
  note,
  type ParsedOf,
  print,
  printBytes,
  type Run,
  toRows,
  toSafeLine,
  toSafeText,
  UsageError,
  watchInterrupt,
} from "../terminal/index.ts";
import { describeResult } from "./call-view.ts";
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
  read(
    client: Client,
    operands: readonly string[],
    options: {
      readonly isJson: boolean;
      readonly signal: AbortSignal;
    },
  ): Promise<void>;
}

/** Runs `junctor NAME [URL|NAME]` and `junctor NAME VERB …`. */
async function runListing<T>(parsed: ParsedOf<"resources">, listing: ThingListing<T>): Promise<number> {
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

/** `junctor resources` */
export const resources: Run<"resources"> = (parsed) =>
  runListing(parsed, {
    name: "resources",
    verb: "read",
    operands: "URI",
    what: ["resource or template", "resources and templates"],
    list: async (client) => [...(await client.listResources()), ...(await client.listResourceTemplates())],
    toCells: (item) => [
      "uriTemplate" in item ? item.uriTemplate : item.uri,
      item.mimeType ?? "",
      item.title ?? item.name,
      item.description ?? "",
    ],
    read: async (client, [uri = "", stray], { isJson, signal }) => {
      if (stray !== undefined)
        throw new UsageError(`read takes one URI, but got ${JSON.stringify(stray)} as well`);
      const result = await client.readResource(uri, { signal });
      if (isJson) return print(`${JSON.stringify(result, undefined, 2)}\n`);
      for (const content of result.contents) {
        if ("blob" in content) await printBytes(Buffer.from(content.blob, "base64"));
        else await print(process.stdout.isTTY ? `${toSafeText(content.text)}\n` : content.text);
      }
    },
  });

/** `junctor prompts` */
export const prompts: Run<"prompts"> = (parsed) =>
  runListing(parsed, {
    name: "prompts",
    verb: "get",
    operands: "PROMPT [KEY=VALUE…]",
    what: ["prompt", "prompts"],
    list: (client) => client.listPrompts(),
    toCells: ({ name, title, description, arguments: args = [] }) => [
      name,
      args.map((arg) => (arg.required === true ? `${arg.name}=…` : `[${arg.name}=…]`)).join(" "),
      description ?? title ?? "",
    ],
    read: async (client, [name = "", ...words], { isJson, signal }) => {
      const result = await client.getPrompt(name, parseArguments(words), { signal });
      if (isJson) return print(`${JSON.stringify(result, undefined, 2)}\n`);
      const text = result.messages.map(describeMessage).join("\n");
      return print(`${process.stdout.isTTY ? toSafeText(text) : text}\n`);
    },
  });

function parseArguments(words: readonly string[]): { readonly [name: string]: string } {
  return Object.fromEntries(
    words.map((word) => {
      const at = word.indexOf("=");
      if (at < 1) throw new UsageError(`${JSON.stringify(word)} is not of the form KEY=VALUE`);
      return [word.slice(0, at), word.slice(at + 1)];
    }),
  );
}

function describeMessage({ role, content }: PromptMessage): string {
  return `${role}: ${describeResult({ content: [content] })}`;
}

/** `junctor skills` */
export const skills: Run<"skills"> = (parsed) =>
  runListing(parsed, {
    name: "skills",
    verb: "read",
    operands: "URI [FILE]",
    what: ["skill", "skills"],
    list: (client) => client.skills.listSkills(),
    toCells: ({ uri, frontmatter, resources }) => [
      uri,
      resources === "dynamic"
        ? "dynamic"
        : `${resources.length} ${resources.length === 1 ? "file" : "files"}`,
      frontmatter.description,
    ],
    read: async (client, [uri = "", file, stray], { isJson, signal }) => {
      if (stray !== undefined)
        throw new UsageError(`read takes one file at a time, but got ${JSON.stringify(stray)} as well`);
      const skill = await client.skills.load(uri, { signal });
      if (isJson && file === undefined) {
        const { text, frontmatter, origin, isVerified } = skill;
        return print(
          `${JSON.stringify({ uri: skill.uri, origin, isVerified, frontmatter, text }, undefined, 2)}\n`,
        );
      }
      if (!skill.isVerified)
        await note("junctor: this skill has no digests, so its files cannot be checked\n");
      const content = file === undefined ? skill.text : await skill.read(file, { signal });
      if (isJson) {
        const text =
          typeof content === "string" ? { text: content } : { blob: Buffer.from(content).toString("base64") };
        return print(`${JSON.stringify({ uri: skill.uri, file, ...text }, undefined, 2)}\n`);
      }
      if (typeof content !== "string") return printBytes(content);
      if (process.stdout.isTTY) await note(`From ${toSafeLine(skill.origin)}\n`);
      return print(process.stdout.isTTY ? toSafeText(content) : content);
    },
  });
