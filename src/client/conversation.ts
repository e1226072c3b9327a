import { RpcError } from "../errors/rpc-error.ts";
import type { RawJson } from "../json/raw.ts";
import type { Notification } from "../jsonrpc/message.ts";
import type { Link } from "../mcp/link.ts";
import { type ClientCapabilities, type Implementation, isLogLevel, type LogLevel } from "../mcp/types.ts";
import type { CallEvent } from "../tools/context.ts";
import type { Agreement } from "./agreement.ts";
import { type AddEnvelope, addLegacyEnvelope, createModernEnvelope } from "./envelope.ts";

/** How one request is made. */
export interface RequestSpec {
  readonly signal: AbortSignal;
  /** Takes progress and logs of this request; asking for it costs the server work, so it is left out where nobody listens. */
  readonly onEvent?: ((event: CallEvent) => void) | undefined;
  readonly logLevel?: LogLevel | undefined;
  readonly capabilities?: ClientCapabilities | undefined;
  readonly mirrored?: { readonly [header: string]: string } | undefined;
}

/** Requests to one server, in the form its era wants. */
export class Conversation {
  readonly agreement: Agreement;
  readonly link: Link;
  readonly #addEnvelope: AddEnvelope;
  readonly #notified: (notification: Notification) => void;
  /** Who wants the progress under which token. Tokens are minted here and are nobody else's. */
  readonly #listeners = new Map<number, (event: CallEvent) => void>();
  #nextToken = 1;

  constructor(
    link: Link,
    agreement: Agreement,
    info: Implementation,
    capabilities: ClientCapabilities,
    notified: (notification: Notification) => void,
  ) {
    this.link = link;
    this.agreement = agreement;
    this.#notified = notified;
    const { mode } = agreement;
    this.#addEnvelope =
      mode.kind === "modern" ? createModernEnvelope(mode.revision, info, capabilities) : addLegacyEnvelope;
  }

  /** Sends a request and resolves with its result, whatever its `resultType`. */
  async request(method: string, params: RawJson | undefined, spec: RequestSpec): Promise<RawJson> {
    const { signal, onEvent, logLevel, capabilities, mirrored } = spec;
    const token = onEvent === undefined ? undefined : this.#nextToken++;
    if (token !== undefined && onEvent !== undefined) this.#listeners.set(token, onEvent);
    try {
      return await this.link.request({
        method,
        params: this.#addEnvelope(params, { progressToken: token, logLevel, capabilities }),
        signal,
        mirrored,
      });
    } finally {
      if (token !== undefined) this.#listeners.delete(token);
    }
  }

  /** Takes what arrives on the link. Progress goes to whoever asked for it; everything else to the client. */
  take(notification: Notification): void {
    if (notification.method !== "notifications/progress") return this.#notified(notification);
    const listener = this.#listeners.get(Number(notification.params?.at("progressToken")?.value));
    const event = toProgress(notification.params);
    if (event !== undefined) listener?.(event);
  }
}

function toProgress(params: RawJson | undefined): CallEvent | undefined {
  const { progress, total, message } = (params?.value ?? {}) as { readonly [key: string]: unknown };
  if (typeof progress !== "number") return undefined;
  return {
    kind: "progress",
    progress,
    ...(typeof total === "number" ? { total } : {}),
    ...(typeof message === "string" ? { message } : {}),
  };
}

/** A log message as an event; undefined when it makes no sense. */
export function toLog(params: RawJson | undefined): CallEvent | undefined {
  const { level, logger, data } = (params?.value ?? {}) as { readonly [key: string]: unknown };
  if (!isLogLevel(level)) return undefined;
  return { kind: "log", level, data, ...(typeof logger === "string" ? { logger } : {}) };
}

/** What a result says it is. A missing `resultType` means complete; one nobody knows is an error. */
export function resultTypeOf(result: RawJson): "complete" | "input_required" {
  const type = result.at("resultType")?.value ?? "complete";
  if (type === "complete" || type === "input_required") return type;
  throw new RpcError(
    "rpc.other",
    `The server answered with a result of the unknown type ${JSON.stringify(type)}`,
  );
}
