import { type Clock, systemClock } from "../async/clock.ts";
import type { Deadline } from "../async/deadline.ts";
import { SessionExpiredError } from "../errors/session-expired-error.ts";
import { RawJson } from "../json/raw.ts";
import type { LinkEvents } from "../mcp/link.ts";
import type { Revision } from "../mcp/revision.ts";
import type { Implementation, Prompt, Resource, ResourceTemplate, Tool, ToolResult } from "../mcp/types.ts";
import type { CallContext, CallEvent } from "../tools/context.ts";
import type { Change, Provider, ToolCall, ToolOutcome } from "../tools/provider.ts";
import type { Agreement } from "./agreement.ts";
import { type AuditOptions, createAudit } from "./audit.ts";
import type { CallOptions } from "./call-options.ts";
import { Conversation, toLog } from "./conversation.ts";
import { Conversations } from "./conversations.ts";
import { createEraCache, type EraCache } from "./era-cache.ts";
import { createFacets } from "./facets.ts";
import { type AskHandlers, answerRequest, capabilitiesOf } from "./handlers.ts";
import { createLists } from "./lists.ts";
import { negotiate, type OpenLink } from "./negotiate.ts";
import { streamCall, type StreamedCall } from "./stream-call.ts";
import { createToolCalls, type Send } from "./tool-calls.ts";
import { createToolCheck } from "./tool-check.ts";
import { createWatcher } from "./watcher.ts";

export interface ClientOptions {
  /** Who we say we are. */
  readonly clientInfo?: Implementation;
  /** What servers may ask of us. */
  readonly handlers?: AskHandlers;
  /** Speak this revision or none; by default the newest both sides know. */
  readonly revision?: Revision;
  /** Share one between clients to probe each server once. */
  readonly eras?: EraCache;
  /** How long nothing may come during a call; 60 s. */
  readonly timeoutMs?: number;
  /** How long a call may take in all; 10 min. */
  readonly maxTotalMs?: number;
  /** How long connecting may take; 30 s. */
  readonly connectTimeoutMs?: number;
  /** How long a pipe may be silent before its server is taken for a legacy one; 3 s. */
  readonly probeTimeoutMs?: number;
  /** Whether arguments and structured output are checked; true. */
  readonly validate?: boolean;
  /** Most rounds of questions in one call. */
  readonly maxRounds?: number;
  readonly audit?: AuditOptions;
  /** Takes log messages that belong to no call. */
  readonly onLog?: (event: Extract<CallEvent, { kind: "log" }>) => void;
  /** Told what was odd and not fatal. */
  readonly onWarning?: (text: string) => void;
  readonly clock?: Clock;
}

/** A server of any age, as a provider and for direct use. Made by `connect`; disposing it closes everything it opened. */
export interface Client extends Provider, AsyncDisposable {
  /** What was settled with the server; may change when it is connected to anew. */
  agreement(): Promise<Agreement>;
  listTools(context?: CallContext): Promise<readonly Tool[]>;
  /** Calls a tool and resolves with its result, also when that is an error; see {@link CallOptions.throwOnToolError}. */
  callTool(name: string, args?: object, options?: CallOptions): Promise<ToolResult>;
  /** The same for programs that compose providers: arguments and result stay as they are. */
  callTool(call: ToolCall, context: CallContext): Promise<ToolOutcome>;
  /**
   * Calls a tool and gives what comes as it comes; the last thing is the result.
   *
   * @example
   * for await (const part of client.streamTool("countdown", { from: 3 })) console.log(part);
   */
  streamTool(name: string, args?: object, options?: CallOptions): StreamedCall;
  /** Whether there is at least one tool. */
  availableTools(): Promise<boolean>;
  listResources(): Promise<readonly Resource[]>;
  listResourceTemplates(): Promise<readonly ResourceTemplate[]>;
  listPrompts(): Promise<readonly Prompt[]>;
  /** Sends any request; for methods that have no function here. */
  request(
    method: string,
    params?: object,
    options?: Pick<CallOptions, "signal" | "timeoutMs" | "maxTotalMs">,
  ): Promise<unknown>;
}

export interface ClientWays {
  readonly open: (events: LinkEvents) => ReturnType<OpenLink>;
  readonly target: string;
  readonly cacheKey: string;
  readonly isHttp: boolean;
}

/** Eras found out by clients that were not told to keep them elsewhere. */
const sharedEras = createEraCache();

const defaultInfo: Implementation = { name: "junctor", version: "0.1.0" };

/** A client over whatever `ways.open` opens. Connects at once, and again when it must. */
export async function createClient(ways: ClientWays, options: ClientOptions = {}): Promise<Client> {
  const { clientInfo = defaultInfo, handlers = {}, clock = systemClock, onWarning = () => {} } = options;
  const { timeoutMs = 60_000, maxTotalMs = 600_000, eras = sharedEras } = options;
  const capabilities = capabilitiesOf(handlers);
  const deadlines = new Set<Deadline>();

  const begin = async (): Promise<Conversation> => {
    let conversation: Conversation | undefined;
    const events: LinkEvents = {
      notified: (notification) => conversation?.take(notification),
      asked: async (request, signal) => {
        const releases = Array.from(deadlines, (deadline) => deadline.hold());
        try {
          return await answerRequest(request, handlers, signal);
        } finally {
          releases.forEach((release) => release());
        }
      },
    };
    const { link, agreement } = await negotiate(() => ways.open(events), ways.isHttp, {
      clientInfo,
      capabilities,
      eras,
      cacheKey: ways.cacheKey,
      revision: options.revision,
      probeTimeoutMs: options.probeTimeoutMs ?? 3000,
      timeoutMs: options.connectTimeoutMs ?? 30_000,
      clock,
    });
    conversation = new Conversation(link, agreement, clientInfo, capabilities, (notification) => {
      if (watcher.take(notification)) return;
      const event = notification.method === "notifications/message" ? toLog(notification.params) : undefined;
      if (event?.kind === "log") options.onLog?.(event);
    });
    return conversation;
  };

  const conversations = new Conversations(begin, clock, () => watcher.renewed());
  const converse = (): Promise<Conversation> => conversations.get();

  /** A session that expired is begun anew, once; the request that met it was not carried out, so it is sent again. */
  const send: Send = async (method, params, spec) => {
    const conversation = await unlessAborted(converse(), spec.signal);
    try {
      return await conversation.request(method, params, spec);
    } catch (error) {
      if (!(error instanceof SessionExpiredError)) throw error;
      await conversations.renew(conversation);
      return (await unlessAborted(converse(), spec.signal)).request(method, params, spec);
    }
  };
  const plain = (method: string, params: RawJson | undefined): Promise<RawJson> =>
    send(method, params, { signal: AbortSignal.timeout(timeoutMs) });

  const lists = createLists(converse, plain, {
    clock,
    maxTtlMs: 24 * 3_600_000,
    maxPages: 1000,
    maxItems: 100_000,
    isHttp: ways.isHttp,
    onWarning,
  });
  const watcher = createWatcher(converse, plain, (change) => lists.invalidate(change.kind), clock, onWarning);
  const calls = createToolCalls({
    send,
    converse,
    lists,
    check: createToolCheck(onWarning),
    handlers,
    audit: options.audit === undefined ? undefined : createAudit(options.audit, clock),
    target: ways.target,
    clock,
    timeoutMs,
    maxTotalMs,
    maxRounds: options.maxRounds ?? 10,
    validate: options.validate ?? true,
    deadlines,
  });

  const { agreement } = await converse();
  const call = (name: string, args: object = {}, given: CallOptions = {}): Promise<ToolResult> =>
    calls.call(name, args, given);
  return {
    ...createFacets(agreement, { send, lists, watcher, handlers, timeoutMs, maxTotalMs, clock }),
    agreement: async () => (await converse()).agreement,
    listTools: () => lists.tools.get(),
    callTool: ((first: string | ToolCall, second?: object, third?: CallOptions) =>
      typeof first === "string"
        ? call(first, second, third)
        : calls.forward(first, second as CallContext)) as Client["callTool"],
    streamTool: (name, args, given) => streamCall((observed) => call(name, args, observed), given),
    availableTools: async () => (await lists.tools.get()).length > 0,
    listResources: () => lists.resources.get(),
    listResourceTemplates: () => lists.templates.get(),
    listPrompts: () => lists.prompts.get(),
    request: async (method, params, given = {}) => {
      const raw = params === undefined ? undefined : RawJson.fromValue(params);
      return (
        await send(method, raw, { signal: given.signal ?? AbortSignal.timeout(given.timeoutMs ?? timeoutMs) })
      ).value;
    },
    onChange: (listener: (change: Change) => void) => watcher.onChange(listener),
    [Symbol.asyncDispose]: async () => {
      watcher.stop();
      await conversations[Symbol.asyncDispose]();
    },
  };
}

/** Waits for a promise, but not for longer than somebody wants it. Nothing was sent yet then. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
