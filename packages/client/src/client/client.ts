import { systemClock, waitFor, type Deadline, Deadlines } from "@junctor/core/async";
import type { AuthorizationError } from "@junctor/core/errors";
import type { ListFault } from "@junctor/core/fit";
import type { RawJson } from "@junctor/core/json";
import {
  type LinkEvents,
  everythingRelayable,
  type Implementation,
  type Prompt,
  type Resource,
  type ResourceTemplate,
  type Tool,
  type ToolResult,
} from "@junctor/core/mcp";
import { packageVersion } from "@junctor/core/options";
import {
  createAudit,
  type CallContext,
  type OldChange,
  type OldOutcome,
  type OldProvider,
  type ToolCall,
  type ToolOutcome,
} from "@junctor/core/provider";
import type { Notification } from "@junctor/core/rpc";
import { type Apps, createApps } from "./apps.ts";
import { createRecorded } from "./call-record.ts";
import { type ClientOptions, ownExtensions, withExtensions } from "./client-options.ts";
import { type Agreement, type Conversation, createConversation, toLog } from "./conversation.ts";
import { createConversations } from "./conversations.ts";
import { createEraCache } from "./era-cache.ts";
import { type Reads, createFacets, createReads } from "./facets.ts";
import { createForwarder, toCallTool } from "./forward.ts";
import { answerRequest, capabilitiesOf } from "./handlers.ts";
import { type PlainRequest, createLists } from "./lists.ts";
import { type OpenLink, negotiate } from "./negotiate.ts";
import { createOldTasks, hasOldTasks } from "./old-tasks.ts";
import { Visits, answerBy, createOnBehalf, toSpec } from "./on-behalf.ts";
import { QuestionRouter } from "./question-router.ts";
import { type ClientSkills, createSkills } from "./skills.ts";
import { type StreamedCall, streamCall } from "./stream-call.ts";
import { type ClientTask, type StartedCall, createTasks } from "./tasks.ts";
import { type CallOptions, createToolCalls, splitMeta } from "./tool-calls.ts";
import { createToolCheck } from "./tool-check.ts";
import { createWatcher } from "./watcher.ts";

/** A server of any age, as a provider and for direct use. Made by `connect`; disposing it closes everything it opened. */
export interface Client extends OldProvider, Reads, Apps, AsyncDisposable {
  /** The agreement with the server; may change when it is connected to anew. */
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
  /**
   * Starts a call. One that becomes a task is not waited for; keep its `ref` to come back to it. That needs the option `tasks`,
   * and a server that has tasks; any other call is complete.
   *
   * @example
   * const started = await client.startTool("report");
   * if (started.kind === "task") await save(started.task.ref);
   */
  startTool(name: string, args?: object, options?: CallOptions): Promise<StartedCall>;
  /** For gateways: calls a tool of a 2025-11-25 server as a task of that revision. There only if the server takes such calls. */
  readonly callOldTask?: ((call: ToolCall, context: CallContext) => Promise<OldOutcome>) | undefined;
  /** A task by its `ref`, also one that another client started. */
  task(ref: string): ClientTask;
  /** Whether there is at least one tool. */
  availableTools(): Promise<boolean>;
  listResources(): Promise<readonly Resource[]>;
  listResourceTemplates(): Promise<readonly ResourceTemplate[]>;
  listPrompts(): Promise<readonly Prompt[]>;
  readonly skills: ClientSkills;
  /** The faults of the lists that were fetched last: definitions that were mended, and definitions that were left out. */
  readonly listFaults: readonly ListFault[];
  /** Forgets lists that were fetched, because they changed: the next request for one fetches it anew. */
  forgetLists(kind: "tools" | "resources" | "prompts"): void;
  /** The same as disposing it, for JavaScript without `await using`. */
  close(): Promise<void>;
  /** Sends any request; for methods that have no function here. What `params._meta` has goes with what the client puts there. */
  request(
    method: string,
    params?: object,
    options?: Pick<CallOptions, "signal" | "timeoutMs" | "maxTotalMs">,
  ): Promise<unknown>;
}

export interface ClientWays {
  readonly open: (events: LinkEvents) => ReturnType<OpenLink>;
  readonly target: string;
  /** Names the endpoint in the cache of eras; missing for what cannot be met again. */
  readonly cacheKey: string | undefined;
  readonly isHttp: boolean;
  /** Has a person sign in when a request was refused for the lack of it; true when it is to be sent again. */
  readonly signIn?: (error: AuthorizationError) => Promise<boolean>;
}

/** Eras of servers, for clients without an era cache of their own. */
const sharedEras = createEraCache();

const defaultInfo: Implementation = { name: "junctor", version: packageVersion };

/** A client over whatever `ways.open` opens. Connects at once, and again when it must. */
export async function createClient(ways: ClientWays, options: ClientOptions = {}): Promise<Client> {
  const { clientInfo = defaultInfo, handlers = {}, clock = systemClock, onWarning = () => {} } = options;
  const { timeoutMs = 60_000, maxTotalMs = 600_000, maxRounds = 10, eras = sharedEras } = options;
  const { relays } = options;
  const capabilities = relays?.capabilities ?? capabilitiesOf(handlers);
  const router =
    relays === undefined || Object.keys(capabilities).length === 0
      ? undefined
      : new QuestionRouter({ ...relays, clock, onRefused: onWarning });
  const visits = new Visits();
  const deadlines = new Deadlines(clock, { timeoutMs, maxTotalMs });

  const begin = async (
    signal: AbortSignal,
    notified: (notification: Notification) => void,
  ): Promise<Conversation> => {
    let conversation: Conversation | undefined;
    const events: LinkEvents = {
      notified: (notification) => {
        try {
          conversation?.take(notification);
        } catch (error) {
          // An error of a listener must not end the stream of announcements.
          onWarning(`A listener failed: ${String(error)}`);
        }
      },
      asked: (request, asking) =>
        router === undefined
          ? answerRequest(request, handlers, asking).finally(deadlines.hold())
          : (oldTasks.answer(request, asking) ?? answerBy((ask, by) => router.ask(ask, by), request, asking)),
    };
    const open: OpenLink = async () => {
      options.onOpen?.();
      return ways.open(events);
    };
    const { link, agreement } = await negotiate(open, ways.isHttp, {
      clientInfo,
      capabilities: withExtensions(capabilities, relays?.extensions ?? ownExtensions(options, false)),
      eras,
      cacheKey: ways.cacheKey,
      revision: options.revision,
      era: options.era,
      probeTimeoutMs: options.probeTimeoutMs ?? 3000,
      timeoutMs: options.connectTimeoutMs ?? 30_000,
      maxTotalMs: options.maxStartMs ?? 600_000,
      clock,
      signal,
    });
    // A modern server lists what the declared capabilities allow, and asks only the caller of a call: declare all of them.
    const isModern = agreement.mode.kind === "modern";
    const own = relays !== undefined && isModern ? everythingRelayable : capabilities;
    const declared = withExtensions(own, relays?.extensions ?? ownExtensions(options, isModern));
    const speaker = { info: clientInfo, capabilities: declared, clock };
    conversation = createConversation(link, agreement, speaker, notified);
    return conversation;
  };

  const conversations = createConversations({
    begin,
    // A person takes as long as a person takes.
    signIn: (error) => (ways.signIn?.(error) ?? Promise.resolve(false)).finally(deadlines.hold()),
    clock,
    reconnects: options.reconnects ?? true,
    hasSessions: ways.isHttp,
    onLost: options.onLost ?? (() => {}),
  });
  const { send } = conversations;
  const plain: PlainRequest = (method, params, limits = {}) =>
    deadlines.run(limits, (deadline) => send(method, params, toSpec(deadline)));
  const lists = createLists(conversations.get, plain, {
    clock,
    maxTtlMs: 24 * 3_600_000,
    maxPages: 1000,
    maxItems: 100_000,
    // A gateway puts the tools of many servers into one list.
    maxTools: options.relays === undefined ? 100_000 : 10_000,
    maxBytes: 64 * 1024 * 1024,
    isHttp: ways.isHttp,
    onListFault:
      options.onListFault ??
      (({ name, isLeftOut, reason }, method) => {
        if (isLeftOut) onWarning(`Left out of ${method}: ${name}: ${reason}`);
      }),
  });
  const invalidate = (kind: OldChange["kind"]): void => {
    lists.invalidate(kind);
    if (kind === "resources") skills.invalidate();
  };
  const watcher = createWatcher({
    conversations,
    request: plain,
    onChanged: ({ kind }) => invalidate(kind),
    clock,
    onWarning,
  });
  conversations.hear(visits);
  conversations.hear({
    take: ({ method, params }) => {
      const event = method === "notifications/message" ? toLog(params) : undefined;
      if (event !== undefined) options.onLog?.(event);
      return true;
    },
  });
  const onBehalf = createOnBehalf({ deadlines, conversations, router, visits, ...relays });
  const oldTasks = createOldTasks({ send, deadlines, clock });
  const tasks = createTasks({ send, deadlines, handlers, clock });
  const calls = createToolCalls({
    tasks,
    declaresTasks: options.tasks === true,
    forwarder: createForwarder({
      conversations,
      onBehalf,
      lists,
      isHttp: ways.isHttp,
      resultTypes: relays?.resultTypes,
    }),
    check: createToolCheck(onWarning),
    handlers,
    recorded:
      options.audit === undefined
        ? undefined
        : createRecorded({
            audit: createAudit(options.audit, clock),
            target: ways.target,
            clock,
            agreement: () => conversations.agreement,
          }),
    deadlines,
    clock,
    maxRounds,
    validate: options.validate ?? true,
  });

  const { agreement } = await waitFor(conversations.get(), options).catch(async (error: unknown) => {
    // Who gives connecting up leaves nothing behind.
    await conversations[Symbol.asyncDispose]();
    throw error;
  });
  // A legacy server may ask outside of any call, on the stream of its announcements: who can be asked keeps it open.
  if (agreement.mode.kind === "legacy" && Object.keys(capabilities).length > 0) watcher.onChange(() => {});
  const call = (name: string, args: object = {}, given: CallOptions = {}): Promise<ToolResult> =>
    calls.call(name, args, given);
  const facets = createFacets(agreement, { send, lists, watcher, onBehalf });
  const reads = createReads({ facets, handlers, capabilities, maxRounds, clock });
  const skills = createSkills({
    request: plain,
    capabilities: async () => (await conversations.get()).agreement.capabilities,
    readResource: reads.readResource,
    target: ways.target,
    clock,
    onWarning,
  });
  const close = async (): Promise<void> => {
    watcher.stop();
    await conversations[Symbol.asyncDispose]();
  };
  return {
    ...facets,
    ...reads,
    skills: skills.skills,
    ...createApps({
      listTools: () => lists.tools.get(),
      listResources: () => lists.resources.get(),
      readResource: reads.readResource,
      call,
    }),
    agreement: async () => (await conversations.get()).agreement,
    listTools: (context) => (context === undefined ? lists.tools.get() : waitFor(lists.tools.get(), context)),
    callTool: toCallTool(call, calls.forward),
    startTool: (name, args = {}, given = {}) => calls.start(name, args, given),
    callOldTask: relays !== undefined && hasOldTasks(agreement) ? oldTasks.call : undefined,
    task: (ref) => tasks.task(ref),
    streamTool: (name, args, given) => streamCall((observed) => call(name, args, observed), given),
    get cacheHints() {
      return lists.hints();
    },
    get listFaults() {
      return lists.faults();
    },
    forgetLists: invalidate,
    availableTools: async () => (await lists.tools.get()).length > 0,
    listResources: () => lists.resources.get(),
    listResourceTemplates: () => lists.templates.get(),
    listPrompts: () => lists.prompts.get(),
    request: async (method, given, limits = {}) => {
      const { params, meta } = splitMeta(given);
      const work = (deadline: Deadline): Promise<RawJson> =>
        send(method, params, { ...toSpec(deadline), meta });
      return (await deadlines.run(limits, work)).value;
    },
    onChange: (listener) => watcher.onChange(listener),
    close,
    [Symbol.asyncDispose]: close,
  };
}
