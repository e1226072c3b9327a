import { createHash } from "node:crypto";
import { type RawJson, toOneLine } from "@junctor/core/json";

/** The most characters of arguments that a question shows. */
const maxShown = 1500;

/** What a question is about. */
interface Asked {
  readonly method: string;
  readonly name: string;
  readonly server: string | undefined;
  readonly caller: string | undefined;
  /** From {@link showArguments}. */
  readonly arguments: string;
  readonly definition: string;
}

/**
 * The question to a person. Names and arguments come from models and servers: they are quoted, on a line of their own, and no word of
 * theirs stands outside of quotes. Descriptions of servers are not shown at all.
 */
export function toQuestionText({ method, name, server, caller, ...shown }: Asked): string {
  return [
    "The gateway asks: may this call be made?",
    `Operation: ${method} ${quote(name)}${server === undefined ? "" : ` of the server ${quote(server)}`}`,
    `Caller: ${caller === undefined ? "without a name" : quote(caller)}`,
    `Arguments, as they will be sent: ${shown.arguments}`,
    `Definition: ${shown.definition}`,
    "A yes is for this call alone, and used once.",
  ].join("\n");
}

/** Arguments on one line, without characters that would show them otherwise than they are. */
export function showArguments(args: RawJson, hide: (json: string) => string): string {
  const text = plain(hide(toOneLine(args).text));
  if (text.length <= maxShown) return text;
  return `${text.slice(0, maxShown)}… (${args.byteLength} bytes in all, ${digestOf(args.bytes)})`;
}

/** A text in quotes. */
export function quote(text: string): string {
  return plain(JSON.stringify(text.length > 300 ? `${text.slice(0, 300)}…` : text));
}

/** Spells out control characters, invisible ones, and those that change the direction of text. */
function plain(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}\p{Default_Ignorable_Code_Point}]|\p{Cf}/gu,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
  );
}

/** A short name for bytes, by which a person can compare them. */
export function digestOf(bytes: string | Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex").slice(0, 32)}`;
}
