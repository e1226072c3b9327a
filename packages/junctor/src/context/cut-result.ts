import { Buffer } from "node:buffer";
import type { RawJson } from "@junctor/core/json";
import type { Content, ToolResult } from "@junctor/core/mcp";
import { estimateTokens, toCharacters } from "./estimate.ts";

/** Keeps the part that is left out, and returns the id to read it by. */
type Keep = (content: string | Buffer, mimeType?: string) => string;

/** The most that an image or a recording costs a model, whatever its size. */
const tokensOfMedia = 1600;
/** The text in place of the rest, with the link to it. */
const tokensOfNotice = 150;
const headShare = 0.7;
/** The most images and the like that are kept, of one result. */
const maxLinks = 16;

/** The URI by which a kept result is read as a resource. */
export const resultScheme = "junctor://result/";

/** A result cut to fit about this many tokens; undefined where it fits as it is. */
export function cutResult(result: RawJson, maxTokens: number, keep: Keep): ToolResult | undefined {
  // The text of a result is no longer than its JSON.
  if (estimateTokens(result.byteLength) <= maxTokens) return undefined;
  const { content: blocks, structuredContent, ...rest } = result.value as Partial<ToolResult>;
  const content = Array.isArray(blocks) ? blocks.filter(isBlock) : [];
  const texts = content.flatMap((block) => textOf(block) ?? []);
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  const media = content.filter((block) => textOf(block) === undefined);
  const structured = structuredContent === undefined ? undefined : JSON.stringify(structuredContent);
  const tokens = estimateTokens(length) + media.reduce((sum, block) => sum + costOf(block), 0);
  if (tokens <= maxTokens && estimateTokens(structured ?? "") <= maxTokens) return undefined;
  const room = Math.max(tokensOfNotice, maxTokens - tokensOfNotice);
  if (tokens <= maxTokens && structured !== undefined && length > 0)
    return { ...rest, content: [...content, ...noticeOf("The structured content", structured, keep)] };
  const whole = length === 0 && structured !== undefined ? structured : texts.join("\n");
  const { kept, left } = fitMedia(media, whole === "" ? room : room / 2, keep);
  const roomForText = toCharacters(
    Math.max(room / 2, room - kept.reduce((sum, block) => sum + costOf(block), 0)),
  );
  const cut =
    whole.length <= roomForText
      ? [{ type: "text" as const, text: whole }]
      : cutText(whole, roomForText, keep);
  return { ...rest, content: [...(whole === "" ? [] : cut), ...kept, ...left] };
}

function cutText(whole: string, room: number, keep: Keep): readonly Content[] {
  const id = keep(whole);
  const head = whole.slice(0, endOfHead(whole, Math.floor(room * headShare)));
  const tail = whole.slice(startOfTail(whole, whole.length - Math.floor(room * (1 - headShare))));
  const left = whole.length - head.length - tail.length;
  const from = linesIn(head) + 1;
  const notice =
    `[… ${left} of ${whole.length} characters, about ${estimateTokens(left)} tokens, are left out here. ` +
    `read_result {"id":"${id}","from":${from}} reads on; "match" finds lines. …]`;
  const joined = `${head}${head.endsWith("\n") ? "" : "\n"}${notice}\n${tail}`;
  return [{ type: "text", text: joined }, linkTo(id, whole.length)];
}

/** A notice that something is left out altogether. */
function noticeOf(what: string, whole: string, keep: Keep): readonly Content[] {
  const id = keep(whole);
  const text = `[${what}, about ${estimateTokens(whole)} tokens, is left out. read_result {"id":"${id}"} reads it.]`;
  return [{ type: "text", text }, linkTo(id, whole.length)];
}

function linkTo(id: string, size: number, mimeType = "text/plain"): Content {
  return { type: "resource_link", uri: `${resultScheme}${id}`, name: "result", mimeType, size };
}

/** Images and the like that fit, and links in place of the others. */
function fitMedia(
  media: readonly Content[],
  room: number,
  keep: Keep,
): { readonly kept: readonly Content[]; readonly left: readonly Content[] } {
  const kept: Content[] = [];
  const left: Content[] = [];
  let rest = room;
  let dropped = 0;
  for (const block of media) {
    const cost = costOf(block);
    if (cost <= rest) {
      rest -= cost;
      kept.push(block);
      continue;
    }
    const data = dataOf(block);
    if (data === undefined || left.length >= maxLinks) {
      dropped++;
      continue;
    }
    const bytes = Buffer.from(data.base64, "base64");
    left.push(linkTo(keep(bytes, data.mimeType), bytes.length, data.mimeType));
  }
  if (dropped > 0) left.push({ type: "text", text: `[${dropped} more blocks of the result are left out.]` });
  return { kept, left };
}

/** A server may send anything. */
function isBlock(block: unknown): block is Content {
  if (typeof block !== "object" || block === null || !("type" in block)) return false;
  const { type } = block;
  if (type === "text") return "text" in block && typeof block.text === "string";
  if (type === "image" || type === "audio") return "data" in block && typeof block.data === "string";
  return (
    type !== "resource" ||
    ("resource" in block && typeof block.resource === "object" && block.resource !== null)
  );
}

/** The text of a block that is text; undefined for any other. */
function textOf(block: Content): string | undefined {
  if (block.type === "text") return block.text;
  if (block.type !== "resource") return undefined;
  return "text" in block.resource && typeof block.resource.text === "string"
    ? block.resource.text
    : undefined;
}

function costOf(block: Content): number {
  const tokens = estimateTokens(JSON.stringify(block));
  return block.type === "image" || block.type === "audio" ? Math.min(tokens, tokensOfMedia) : tokens;
}

/** The bytes of a block; undefined for one that has none. */
function dataOf(block: Content): { readonly base64: string; readonly mimeType: string } | undefined {
  const { data, blob, mimeType } = (block.type === "resource" ? block.resource : block) as {
    readonly data?: unknown;
    readonly blob?: unknown;
    readonly mimeType?: unknown;
  };
  const base64 = block.type === "resource" ? blob : data;
  if (typeof base64 !== "string") return undefined;
  return { base64, mimeType: typeof mimeType === "string" ? mimeType : "application/octet-stream" };
}

/** The end of the last line before a place, if that is near; else the place, not in the middle of a character. */
function endOfHead(text: string, at: number): number {
  const end = text.lastIndexOf("\n", at - 1) + 1;
  if (end > at * 0.8) return end;
  return isInside(text, at) ? at - 1 : at;
}

function startOfTail(text: string, at: number): number {
  const start = text.indexOf("\n", at) + 1;
  if (start > 0 && start - at < (text.length - at) * 0.2) return start;
  return isInside(text, at) ? at + 1 : at;
}

function isInside(text: string, at: number): boolean {
  return /^[\uDC00-\uDFFF]/.test(text.slice(at, at + 1));
}

function linesIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count++;
  return count;
}
