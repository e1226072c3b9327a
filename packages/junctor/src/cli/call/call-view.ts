import type { Content, ToolResult } from "@junctor/core/mcp";
import type { CallEvent } from "@junctor/core/provider";
import { note, print, toSafeLine, toSafeText } from "../terminal/index.ts";

/** Shows a call as it happens. */
export interface CallView {
  event(event: CallEvent): void;
  /** Says something to the person, on a line of its own. */
  say(line: string): void;
  /** Shows the result, or the part of it that was not shown yet. */
  result(result: ToolResult): Promise<void>;
}

/**
 * On a terminal, partial text appears on the standard output as it comes, and the result adds only what is missing. In a
 * pipe the standard output gets the result alone. Progress and logs go to the standard error stream in both cases.
 *
 * The protocol has one notification for "here is some of the text" and for "step 3 of 7". A notification with a total is taken for a step.
 * So is text that turns out not to be part of the result: then the whole result is shown below it.
 */
export function createCallView(isTerminal: boolean): CallView {
  const clean = isTerminal ? toSafeText : (text: string): string => text;
  let streamed = "";
  let isMidLine = false;

  const write = (text: string): Promise<void> => {
    if (text !== "") isMidLine = !text.endsWith("\n");
    return print(text);
  };
  const say = (line: string): void => {
    if (isMidLine && isTerminal) void write("\n");
    void note(`${line}\n`);
  };

  return {
    say,
    event: (event) => {
      if (event.kind === "log") return say(describeLog(event));
      const { message, total } = event;
      if (message === undefined || total !== undefined) return say(describeProgress(event));
      if (!isTerminal) return;
      streamed += message;
      void write(clean(message));
    },
    result: async (result) => {
      const [first, ...others] = result.content;
      const isContinued = streamed !== "" && first?.type === "text" && first.text.startsWith(streamed);
      if (isContinued) {
        await write(clean(first.text.slice(streamed.length)));
        if (others.length > 0 && isMidLine) await write("\n");
        await write(clean(others.map(describeBlock).join("\n")));
      } else {
        if (isMidLine) await write("\n");
        await write(clean(describeResult(result)));
      }
      if (isMidLine) await write("\n");
    },
  };
}

function describeProgress({ progress, total, message }: Extract<CallEvent, { kind: "progress" }>): string {
  const steps = total === undefined ? `${progress ?? ""}` : `${progress ?? "?"}/${total}`;
  return `[${steps}]${message === undefined ? "" : ` ${toSafeLine(message)}`}`;
}

function describeLog({ level, logger, data }: Extract<CallEvent, { kind: "log" }>): string {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return `[${level}] ${logger === undefined ? "" : `${toSafeLine(logger)}: `}${toSafeLine(text ?? "")}`;
}

/** A result as text for people: text as it is, everything else in a few words. */
export function describeResult({ content, structuredContent }: ToolResult): string {
  if (content.length === 0 && structuredContent !== undefined)
    return JSON.stringify(structuredContent, undefined, 2);
  return content.map(describeBlock).join("\n");
}

/** One block of a result. */
function describeBlock(block: Content): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return `[${block.type}: ${block.mimeType}, ${sizeOf(block.data)}]`;
    case "resource_link":
      return `[link: ${block.title ?? block.name}, ${block.uri}]`;
    case "resource": {
      const { resource } = block;
      const type = resource.mimeType === undefined ? "" : `, ${resource.mimeType}`;
      return "text" in resource
        ? `[resource: ${resource.uri}${type}]\n${resource.text}`
        : `[resource: ${resource.uri}${type}, ${sizeOf(resource.blob)}]`;
    }
    default:
      // A server may be newer than we are.
      return `[${String((block satisfies never as { type?: unknown }).type)}: cannot be shown here; see --json]`;
  }
}

/** How much a base64 text holds. */
function sizeOf(base64: string): string {
  const bytes = Math.floor((base64.replace(/=+$/, "").length * 3) / 4);
  if (bytes < 1024) return `${bytes} bytes`;
  const kib = bytes / 1024;
  return kib < 1024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1024).toFixed(1)} MiB`;
}
