import type { Reaction } from "./fake-pipe.ts";
import type { Message } from "./raw-http.ts";

type Json = { readonly [key: string]: unknown };

/** What a fake server is made of. */
export interface Script {
  readonly tools?: readonly object[];
  readonly capabilities?: object;
  /** Answers `tools/call`; the default gives back the arguments as text. */
  readonly call?: (params: Json, message: Message) => Reaction;
  /** Answers anything before the script does. */
  readonly first?: (message: Message) => Reaction | "silence";
  readonly ttlMs?: number;
}

export const echoTool = {
  name: "echo",
  description: "Says it again.",
  inputSchema: { type: "object", properties: { message: { type: "string" } }, required: ["message"] },
} as const;

export const text = (said: string): { readonly content: readonly object[] } => ({
  content: [{ type: "text", text: said }],
});

/** Answers as a modern server does. */
export function modernScript(script: Script = {}): (message: Message) => Reaction {
  const { capabilities = { tools: { listChanged: true } }, tools = [echoTool], ttlMs = 0 } = script;
  const hints = { resultType: "complete", ttlMs, cacheScope: "private" };
  return (message) => {
    const early = script.first?.(message);
    if (early === "silence") return undefined;
    if (early !== undefined) return early;
    switch (message.method) {
      case "server/discover":
        return { result: { supportedVersions: ["2026-07-28"], capabilities, ...hints } };
      case "tools/list":
        return { result: { tools, ...hints } };
      case "tools/call":
        return called(script, message);
      default:
        return unknown(message);
    }
  };
}

/** Answers as a legacy server does: any revision that is asked for, and an error to what is modern. */
export function legacyScript(
  script: Script & { readonly revision?: string; readonly refusal?: Reaction } = {},
): (message: Message) => Reaction {
  const { capabilities = { tools: { listChanged: true } }, tools = [echoTool] } = script;
  return (message) => {
    const early = script.first?.(message);
    if (early === "silence") return undefined;
    if (early !== undefined) return early;
    switch (message.method) {
      case "initialize": {
        const protocolVersion = script.revision ?? message.params?.["protocolVersion"];
        const serverInfo = { name: "fake", version: "1.0.0" };
        return { result: { protocolVersion, capabilities, serverInfo } };
      }
      case "tools/list":
        return { result: { tools } };
      case "tools/call":
        return called(script, message);
      case "server/discover":
        return script.refusal ?? unknown(message);
      default:
        return unknown(message);
    }
  };
}

function called(script: Script, message: Message): Reaction {
  const params = message.params ?? {};
  return script.call === undefined
    ? { result: { resultType: "complete", ...text(JSON.stringify(params["arguments"])) } }
    : script.call(params, message);
}

function unknown({ id, method }: Message): Reaction {
  return id === undefined ? undefined : { error: { code: -32601, message: `Method not found: ${method}` } };
}
