import type { Guardian } from "@junctor/client";
import type { Clock } from "@junctor/core/async";
import { TextTail } from "@junctor/core/channel";
import { ConnectError, ToolError } from "@junctor/core/errors";
import { defined } from "@junctor/core/options";
import {
  createRegistry,
  failure,
  image,
  type Registry,
  structured,
  text,
  type ToolContext,
  type ToolResult,
} from "@junctor/server";
import { type CommandTool, type ServerConfig, type SourceLaunch, toTarget } from "../../config/index.ts";
import { maxOutputBytes, runCommand } from "./run-command.ts";
import { toStdin, toWords } from "./words.ts";

interface CommandsOptions {
  readonly guardian: Guardian;
  readonly clock: Clock;
  readonly onError: (error: unknown, tool: string) => void;
}

type CommandsLaunch = Extract<SourceLaunch, { readonly kind: "commands" }>;

/** Programs of this machine as tools. Throws a `SchemaError` for an input that is not a JSON Schema. */
export function fromCommands(
  { launch, sandbox }: { readonly launch: CommandsLaunch; readonly sandbox: ServerConfig["sandbox"] },
  { guardian, clock, onError }: CommandsOptions,
): Registry {
  const registry = createRegistry({ onError });
  for (const tool of launch.tools) {
    const { name, description, input = noInput, readOnly } = tool;
    const annotations = { readOnlyHint: readOnly };
    registry.register(
      name,
      { ...defined({ description }), input, annotations },
      async (args: object, context: ToolContext) => {
        const [command = "", ...words] = toWords(tool, args);
        const target = toTarget({ ...launch, kind: "command", command, args: words }, sandbox);
        const said = new TextTail(4096);
        const report = reportLines(context);
        const end = await runCommand(target, {
          stdin: toStdin(tool, args),
          signal: context.signal,
          timeoutMs: tool.timeoutMs,
          guardian,
          clock,
          onLine: (line) => {
            said.push(Buffer.from(`${line}\n`));
            report(line);
          },
        }).catch((error: unknown) => {
          if (!(error instanceof ConnectError)) throw error;
          throw new ToolError(`The command cannot be started: ${error.reason}`);
        });
        return toResult(tool, end, said.text.trim());
      },
    );
  }
  return registry;
}

const noInput = { type: "object", properties: {}, additionalProperties: false };

/** The most lines of the standard error stream that are reported; the rest is dropped. */
const maxLogged = 1000;

/** A line with a percentage is progress, any other a log message. */
function reportLines(context: ToolContext): (line: string) => void {
  let logged = 0;
  let last = 0;
  return (line) => {
    if (logged++ >= maxLogged) return;
    const percent = Number(/(?:^|[^\d.])(\d{1,3}(?:\.\d+)?)\s?%/.exec(line)?.[1] ?? Number.NaN);
    if (percent <= 100) {
      if (percent > last) void context.progress(percent, 100, line);
      last = Math.max(last, percent);
    } else void context.log("info", line);
  };
}

function toResult(
  tool: CommandTool,
  { code, signal, stdout, stopped }: Awaited<ReturnType<typeof runCommand>>,
  said: string,
): ToolResult | string {
  const printed = toText(stdout);
  const isRight = code !== null && tool.exitCodes.includes(code) && stopped === undefined;
  if (!isRight) {
    const why =
      stopped === "time"
        ? `The command was ended after ${tool.timeoutMs} ms`
        : stopped === "output"
          ? `The command printed more than ${maxOutputBytes} bytes and was ended`
          : signal === null
            ? `The command exited with code ${code}`
            : `The command was ended by ${signal}`;
    // Where a program printed too much, the beginning is enough.
    return failure([why, said, (printed ?? "").slice(0, maxShown).trim()].filter(Boolean).join("\n"));
  }
  const picture = imageTypeOf(stdout);
  if (picture !== undefined) return { content: [image(stdout, picture)] };
  if (printed === undefined)
    throw new ToolError(`The command printed ${stdout.length} bytes that are neither text nor an image`);
  return tool.json ? toStructured(printed) : { content: [text(printed)] };
}

/** The most characters of the output of a failed command. */
const maxShown = 16 * 1024;

function toStructured(printed: string): ToolResult {
  try {
    return structured(JSON.parse(printed) as unknown, [text(printed)]);
  } catch {
    throw new ToolError(`The command did not print JSON: ${printed.slice(0, 200)}`);
  }
}

/** Undefined for bytes that are not text. */
function toText(bytes: Uint8Array): string | undefined {
  try {
    const decoded = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return decoded.includes("\0") ? undefined : decoded;
  } catch {
    return undefined;
  }
}

/** The media type of an image, by its first bytes; undefined for other bytes. */
function imageTypeOf(bytes: Uint8Array): string | undefined {
  const begin = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 12)).toString("latin1");
  if (begin.startsWith("\u0089PNG\r\n\u001a\n")) return "image/png";
  if (begin.startsWith("\u00ff\u00d8\u00ff")) return "image/jpeg";
  if (/^GIF8[79]a/.test(begin)) return "image/gif";
  return /^RIFF[^]{4}WEBP/.test(begin) ? "image/webp" : undefined;
}
