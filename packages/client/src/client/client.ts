import {
  type Clock,
  type Awaitable,
  type Deadline,
  Deadlines,
  systemClock,
  waitFor,
} from "@junctor/core/async";
import { type ClosedError, type AuthorizationError, NotFoundError } from "@junctor/core/errors";
import type { ListFault, ListPart } from "@junctor/core/fit";
import type { RawJson } from "@junctor/core/json";
import {
  viewType,
  extensionIds,
  type Extensions,
  type Revision,
  type ClientCapabilities,
  type Implementation,
  type CacheHints,
  carriedMeta,
  type Announced,
  announcedAs,
  declaredExtension,
  everythingRelayable,
  type Group,
  type Items,
  type LinkEvents,
  methods,
  type Part,
  type Prompt,
  type Resource,
  type ResourceTemplate,
  type Tool,
  type ToolResult,
} from "@junctor/core/mcp";
import { keys, type KeysOf, defined, packageVersion } from "@junctor/core/options";
import {
  type AuditOptions,
  type CallEvent,
  type CallContext,
  createAudit,
  type Listing,
  type Notice,
  type Offers,
  type Operation,
  type Outcome,
  type Provider,
  type Target,
  toTrace,
} from "@junctor/core/provider";
import type { Notification, Request } from "@junctor/core/rpc";
import { ServerChanges } from "./changes.ts";
import { type Agreement, Conversation, toLog, Conversations } from "./conversation.ts";
import { createGroups, type ServerGroups } from "./groups.ts";
import { type QuestionHandlers, answerRequest, capabilitiesOf } from "./handlers.ts";
import { type KeptList, createLists, type Lists, type PlainRequest } from "./lists.ts";
import { type EraCache, createEraCache, type OpenLink, negotiate } from "./negotiate.ts";
import { answerBy, createOnBehalf, type OnBehalf, toSpec, Visits } from "./on-behalf.ts";
import { createOperations, type Operations } from "./operations.ts";
import { type QuestionHabits, QuestionRouter } from "./question-router.ts";
import { type Apps, createApps, createReads, type ReadOptions, type Reads } from "./reads.ts";
import { type ClientSkills, ServerSkills } from "./skills.ts";
import {
  hasLegacyTasks,
  LegacyTasks,
  type ClientTask,
  createTasks,
  type StartedCall,
  type Tasks,
} from "./tasks.ts";
import {
  createRecorded,
  type Recorded,
  type CallPart,
  streamCall,
  type CallOptions,
  createToolCalls,
  splitMeta,
  type ToolCalls,
  createToolCheck,
} from "./tool-calls.ts";

/** For a client that forwards the calls of others: each question of the server goes to the caller whose call it belongs to. */
interface RelayOptions {
  /** The capabilities to declare to a legacy server on behalf of the callers. */
  readonly capabilities: ClientCapabilities;
  /** The extensions to declare on their behalf: to a legacy server once, to a modern one for its lists. */
  readonly extensions?: Extensions;
  /** The ids of extensions that the config opened for the server, beside those that always pass. */
  readonly opened?: readonly string[];
  /** The `resultType`s of tool results that pass, besides those of the protocol. */
  readonly resultTypes?: readonly string[];
  /** The name of the server, for messages to callers. */
  readonly server: string;
  /** Remembers which requests of the server ask something; share one between the clients of a server. */
  readonly habits?: QuestionHabits;
  /** Whether each request names its caller to the server. Only for a server that is another replica of the same gateway. */
  readonly tellsCaller?: boolean;
  /** Used instead of the client's `timeoutMs` and `maxTotalMs`. Read for each request, so that they may change. */
  readonly limits?: () => RelayLimits;
}

/** How long forwarded requests may take. */
interface RelayLimits {
  readonly timeoutMs: number;
  readonly maxTotalMs: number;
  /** How long a caller may take to answer a legacy server while another call waits for its turn. */
  readonly answerWithinMs: number;
}

/** How a client behaves, whatever the transport to its server. */
export interface ClientOptions {
  /** Who we say we are. */
  readonly clientInfo?: Implementation;
  /** What servers may ask of us. */
  readonly handlers?: QuestionHandlers;
  /** Instead of handlers, for a client that forwards the calls of others. */
  readonly relays?: RelayOptions;
  /** Whether a lost connection is opened again when it is needed; true. */
  readonly reconnects?: boolean;
  /** Called before a connection to the server is opened, which may start a process. If it throws, the connection is not opened. */
  readonly onOpen?: () => void;
  /** Called when the connection to the server was lost; never for HTTP, where each request stands alone. */
  readonly onLost?: (reason: ClosedError) => void;
  /** The only revision to speak; by default the newest that both sides know. */
  readonly revision?: Revision;
  /** The era that is tried first; the other one is spoken if the server does not know it. Modern when left out. */
  readonly era?: "modern" | "legacy";
  /** Share one between clients to probe each server once. */
  readonly eras?: EraCache;
  /** How long a call may go without a message from the server; 60 s. */
  readonly timeoutMs?: number;
  /** How long a call may take in all; 10 min. */
  readonly maxTotalMs?: number;
  /** How long connecting may take; 30 s. A server that is being started has more time while it is at work. */
  readonly connectTimeoutMs?: number;
  /** How long a server that is being started may take in all, however busy it is; 10 min. */
  readonly maxStartMs?: number;
  /** How long a server on a pipe may be silent before it is taken for a legacy one; 3 s. */
  readonly probeTimeoutMs?: number;
  /** Whether arguments and structured output are checked; true. */
  readonly validate?: boolean;
  /** The most rounds of questions in one call. */
  readonly maxRounds?: number;
  /**
   * Declares tasks to modern servers: a call of a tool may then become a task. `callTool` waits for its result all the same;
   * `startTool` does not. False when left out.
   */
  readonly tasks?: boolean;
  /** Declares that this client shows views of tools; see `readView`. False when left out. */
  readonly views?: boolean;
  /** A draft: declares groups, and lists their contents with everything else; see `listGroups`. False when left out. */
  readonly groups?: boolean;
  /** Where a record of each call goes, and what of its arguments. */
  readonly audit?: AuditOptions;
  /** Takes log messages that belong to no call. */
  readonly onLog?: (event: Extract<CallEvent, { kind: "log" }>) => void;
  /**
   * Called for each definition that was mended or left out because clients would refuse it; not again until the fault
   * changes. By default `onWarning` is called for those left out.
   */
  readonly onListFault?: (fault: ListFault) => void;
  /** Called for faults of the server that do not fail a call. */
  readonly onWarning?: (text: string) => void;
  /** The clock that times are measured by; the system's by default. */
  readonly clock?: Clock;
  /** Aborting it stops connecting; once connected, it has no effect. */
  readonly signal?: AbortSignal;
}

export const clientOptionKeys: KeysOf<ClientOptions> = {
  ...keys("clientInfo handlers relays reconnects onOpen onLost revision era eras timeoutMs maxTotalMs"),
  ...keys("connectTimeoutMs maxStartMs onListFault probeTimeoutMs validate maxRounds audit onLog"),
  ...keys("onWarning clock signal tasks views groups"),
};

/** The extensions that a client declares by its options. Tasks and groups are for modern servers. */
function ownExtensions({ relays, tasks, views, groups }: ClientOptions, isModern: boolean): Extensions {
  return {
    ...relays?.extensions,
    ...(tasks === true && isModern ? { [extensionIds.tasks]: {} } : {}),
    ...(views === true ? { [extensionIds.ui]: { mimeTypes: [viewType] } } : {}),
    ...(groups === true && isModern ? { [extensionIds.groups]: {} } : {}),
  };
}

/** Adds extensions, if there are any. */
function withExtensions(
  capabilities: ClientCapabilities,
  extensions: Extensions | undefined,
): ClientCapabilities {
  const hasSome = extensions !== undefined && Object.keys(extensions).length > 0;
  return hasSome ? { ...capabilities, extensions } : capabilities;
}

/** A server of any age, as a provider and for direct use. Made by `connect`; disposing it closes everything it opened. */
export interface Client extends Provider, Reads, Apps, AsyncDisposable {
  /** The agreement with the server; may change when it is connected to again. */
  agreement(): Promise<Agreement>;
  listTools(options?: ReadOptions): Promise<readonly Tool[]>;
  /** Calls a tool and resolves with its result, also when that is an error; see {@link CallOptions.throwOnToolError}. */
  callTool(name: string, args?: object, options?: CallOptions): Promise<ToolResult>;
  /**
   * Calls a tool and yields its events as they come, and the result last. Leaving the loop early cancels the call.
   *
   * @example
   * for await (const part of client.streamTool("countdown", { from: 3 })) console.log(part);
   */
  streamTool(name: string, args?: object, options?: CallOptions): AsyncGenerator<CallPart, void>;
  /**
   * Starts a call. A call that becomes a task resolves at once; keep its `ref` to come back to it. That needs the option
   * `tasks`, and a server that has tasks. Any other call resolves with its result.
   *
   * @example
   * const started = await client.startTool("report");
   * if (started.kind === "task") await save(started.task.ref);
   */
  startTool(name: string, args?: object, options?: CallOptions): Promise<StartedCall>;
  /** For gateways: calls a tool of a 2025-11-25 server as a task of that revision. Undefined if the server takes no such calls. */
  readonly callLegacyTask?:
    | ((
        operation: Operation,
        context: CallContext,
      ) => Promise<Extract<Outcome, { readonly kind: "complete" }>>)
    | undefined;
  /** A task by its `ref`, also one that another client started. */
  task(ref: string): ClientTask;
  /** Whether there is at least one tool. */
  availableTools(): Promise<boolean>;
  /** The resources of the server, kept like its tools. */
  listResources(): Promise<readonly Resource[]>;
  /** The templates of resources, kept like its tools. */
  listResourceTemplates(): Promise<readonly ResourceTemplate[]>;
  /** The prompts of the server, kept like its tools. */
  listPrompts(): Promise<readonly Prompt[]>;
  /** Every group of the server, nested ones too, with the names of its contents. Needs the option `groups`. */
  listGroups(): Promise<readonly Group[]>;
  /**
   * Calls back when a resource changed, or something below it, until the returned function is called. Rejects if the server
   * does not report changes.
   *
   * @example
   * const stop = await client.watchResource("note://today", (uri) => console.log(uri, "changed"));
   */
  watchResource(uri: string, onUpdated: (uri: string) => void): Promise<() => void>;
  /** The skills of the server: listed, loaded and checked. */
  readonly skills: ClientSkills;
  /** The strictest of what the server said about keeping its lists. */
  readonly listHints: CacheHints;
  /** The faults of the lists that were fetched last: definitions that were mended, and definitions that were left out. */
  readonly listFaults: readonly ListFault[];
  /** Forgets lists that were fetched, because they changed: the next request for one fetches it again. */
  forgetLists(kind: "tools" | "resources" | "prompts"): void;
  /** The same as disposing it, for JavaScript without `await using`. */
  close(): Promise<void>;
  /** Sends any request; for methods without a function here. The members of `params._meta` are sent beside those of the client. */
  request(
    method: string,
    params?: object,
    options?: Pick<CallOptions, "signal" | "timeoutMs" | "maxTotalMs">,
  ): Promise<unknown>;
}

/** How a client reaches its server. */
export interface Connector {
  readonly open: (events: LinkEvents) => ReturnType<OpenLink>;
  readonly target: string;
  /** Names the endpoint in the cache of eras; undefined for one that cannot be reached again. */
  readonly cacheKey: string | undefined;
  readonly isHttp: boolean;
  /** Asks a person to sign in after a request was refused; true when the request is to be sent again. */
  readonly signIn?: (error: AuthorizationError) => Promise<boolean>;
}

/** Eras of servers, for clients without an era cache of their own. */
const sharedEras = createEraCache();

const defaultInfo: Implementation = { name: "junctor", version: packageVersion };

/** A client over what `connector.open` opens. Connects at once, and again when the connection was lost. */
export async function createClient(connector: Connector, options: ClientOptions = {}): Promise<Client> {
  const core = new ClientCore(connector, options);
  const agreement = await core.connect();
  const provider: Provider = {
    list: (part, context) => core.list(part, context),
    call: (operation, context) => core.call(operation, context),
    ...(agreement.capabilities.resources?.subscribe === true
      ? { watch: (target, context, listener) => core.watch(target, context, listener) }
      : {}),
    offers: () => core.offers(),
    onChange: (listener) =>
      core.changes.onNews((news) => {
        if ("part" in news) listener(news);
      }),
  };
  const { lists, calls, reads, tasks } = core;
  const callTool = (name: string, args: object = {}, callOptions: CallOptions = {}): Promise<ToolResult> =>
    calls.call(name, args, callOptions);
  const close = (): Promise<void> => core.close();
  const members: Omit<Client, keyof Provider> = {
    ...reads,
    skills: core.skills.skills,
    ...createApps({
      listTools: async () => (await lists.tools.get()).items,
      listResources: async () => (await lists.resources.get()).items,
      readResource: reads.readResource,
      call: callTool,
    }),
    agreement: () => core.agreement(),
    listTools: async (limits = {}) => (await waitFor(lists.tools.get(), limits)).items,
    callTool,
    startTool: (name, args = {}, callOptions = {}) => calls.start(name, args, callOptions),
    callLegacyTask: core.callsLegacyTasks
      ? (operation, context) => core.legacyTasks.call(operation, context)
      : undefined,
    task: (ref) => tasks.task(ref),
    streamTool: (name, args, callOptions) =>
      streamCall((observed) => callTool(name, args, observed), callOptions),
    get listHints() {
      return lists.hints();
    },
    get listFaults() {
      return lists.faults();
    },
    forgetLists: (part) => core.forgetLists(part),
    availableTools: async () => (await lists.tools.get()).items.length > 0,
    listResources: async () => (await lists.resources.get()).items,
    listResourceTemplates: async () => (await lists.templates.get()).items,
    listGroups: async () => (await core.groups.kept.get()).items,
    listPrompts: async () => (await lists.prompts.get()).items,
    request: (method, params, limits) => core.request(method, params, limits),
    watchResource: (uri, onUpdated) => core.changes.watch(uri, (notice) => onUpdated(notice.uri)),
    close,
    [Symbol.asyncDispose]: close,
  };
  return Object.defineProperties(provider, Object.getOwnPropertyDescriptors(members)) as Client;
}

/** The parts of one client, and how an operation passes through them. */
class ClientCore {
  readonly #connector: Connector;
  readonly #options: ClientOptions;
  readonly #clock: Clock;
  readonly #onWarning: (text: string) => void;
  readonly #handlers: QuestionHandlers;
  readonly #maxRounds: number;
  /** What servers may ask of us, or of the callers whose calls are forwarded. */
  readonly #capabilities: ClientCapabilities;
  readonly #deadlines: Deadlines;
  readonly #conversations: Conversations;
  readonly #router: QuestionRouter | undefined;
  readonly #onBehalf: OnBehalf;
  readonly #operations: Operations;
  readonly #recorded: Recorded | undefined;
  #offered: { readonly by: Agreement; readonly offers: Offers } | undefined;
  readonly groups: ServerGroups;
  readonly lists: Lists;
  readonly skills: ServerSkills;
  readonly changes: ServerChanges;
  readonly tasks: Tasks;
  readonly legacyTasks: LegacyTasks;
  readonly calls: ToolCalls;
  readonly reads: Reads;

  constructor(connector: Connector, options: ClientOptions) {
    const { clock = systemClock, onWarning = () => {}, handlers = {}, relays, maxRounds = 10 } = options;
    const { timeoutMs = 60_000, maxTotalMs = 600_000 } = options;
    this.#connector = connector;
    this.#options = options;
    this.#clock = clock;
    this.#onWarning = onWarning;
    this.#handlers = handlers;
    this.#maxRounds = maxRounds;
    this.#capabilities = relays?.capabilities ?? capabilitiesOf(handlers);
    const mayAsk = Object.keys(this.#capabilities).length > 0;
    this.#router =
      relays === undefined || !mayAsk
        ? undefined
        : new QuestionRouter({ ...relays, clock, onRefused: onWarning });
    const deadlines = new Deadlines(clock, relays?.limits ?? (() => ({ timeoutMs, maxTotalMs })));
    this.#deadlines = deadlines;
    const conversations = this.#createConversations();
    this.#conversations = conversations;
    const request: PlainRequest = (method, params, limits = {}) =>
      deadlines.run(limits, (deadline) => conversations.send(method, params, toSpec(deadline)));
    const isDeclared = options.groups === true;
    const agreement = (): Promise<Agreement> => this.agreement();
    this.groups = createGroups({ request, agreement, isDeclared, clock, onWarning });
    this.lists = this.#createLists(request);
    const onChanged = (part: Part): void => this.forgetLists(announcedAs(part));
    this.changes = new ServerChanges({ conversations, request, onChanged, clock, onWarning });
    const visits = new Visits();
    conversations.hear(visits);
    conversations.hear({ take: (notification) => this.#takeLog(notification) });
    this.#onBehalf = createOnBehalf({ deadlines, conversations, router: this.#router, visits, ...relays });
    this.legacyTasks = new LegacyTasks(conversations.send, deadlines, clock);
    this.#operations = createOperations({
      conversations,
      tools: this.lists.tools,
      isHttp: connector.isHttp,
      declaresTasks: options.tasks === true,
      resultTypes: relays?.resultTypes,
    });
    this.tasks = createTasks({ send: this.#operations.send, deadlines, handlers, clock });
    this.#recorded = this.#createRecorded();
    this.calls = this.#createCalls();
    this.reads = createReads({
      provider: this,
      handlers,
      capabilities: this.#capabilities,
      maxRounds,
      clock,
    });
    this.skills = new ServerSkills({
      request,
      capabilities: async () => (await this.agreement()).capabilities,
      readResource: this.reads.readResource,
      target: connector.target,
      clock,
      onWarning,
    });
  }

  async connect(): Promise<Agreement> {
    const { agreement } = await waitFor(this.#conversations.get(), this.#options).catch(
      async (error: unknown) => {
        // A client that did not connect leaves nothing behind.
        await this.#conversations[Symbol.asyncDispose]();
        throw error;
      },
    );
    // A legacy server may ask outside of any call, on its stream of announcements: a client that can answer keeps it open.
    if (agreement.mode.kind === "legacy" && Object.keys(this.#capabilities).length > 0)
      this.changes.onNews(() => {});
    return agreement;
  }

  async agreement(): Promise<Agreement> {
    return (await this.#conversations.get()).agreement;
  }

  async close(): Promise<void> {
    this.changes.stop();
    await this.#conversations[Symbol.asyncDispose]();
  }

  list<P extends Part>(part: P, context: CallContext): Awaitable<Listing<Items[P]>> {
    const ofExtensions =
      part === "skills" ? this.skills.kept : part === "groups" ? this.groups.kept : undefined;
    const kept = (ofExtensions ?? this.lists[part as ListPart]) as unknown as KeptList<Items[P]>;
    return kept.fresh ?? waitFor(kept.get(), context);
  }

  call(operation: Operation, context: CallContext): Promise<Outcome> {
    const { method, name: tool, arguments: args } = operation;
    if (method === "skills/get" || method === "resources/directory/read")
      return this.skills.call(operation, (skillMethod, params) =>
        this.#requestFor(context, skillMethod, params),
      );
    const send = (): Promise<Outcome> =>
      this.#onBehalf(operation, context, (spec) => this.#operations.send(operation, spec));
    if (this.#recorded === undefined || method !== "tools/call") return send();
    const trace = (): string | undefined => toTrace(context.meta?.at("traceparent")?.value);
    return this.#recorded({ tool, args, caller: context.caller, trace }, async (tally) => {
      tally.bytesSent = args.byteLength;
      const outcome = await send();
      if (outcome.kind === "complete") tally.bytesReceived = outcome.result.byteLength;
      return outcome;
    });
  }

  async watch(
    { part, name, ref }: Target,
    { signal }: CallContext,
    listener: (notice: Notice) => void,
  ): Promise<() => void> {
    if (ref !== undefined) throw new NotFoundError("task", ref);
    if (part !== "resources") throw new NotFoundError("resource", name);
    const end = await this.changes.watch(name, listener);
    const stop = (): void => {
      signal.removeEventListener("abort", stop);
      end();
    };
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop);
    return stop;
  }

  offers(): Offers {
    const agreement = this.#conversations.agreement as Agreement;
    if (this.#offered?.by !== agreement) this.#offered = { by: agreement, offers: toOffers(agreement) };
    return this.#offered.offers;
  }

  /** Whether calls of the server's tools can be made as tasks of 2025-11-25 for others. */
  get callsLegacyTasks(): boolean {
    const { agreement } = this.#conversations;
    return this.#options.relays !== undefined && agreement !== undefined && hasLegacyTasks(agreement);
  }

  async request(
    method: string,
    paramsWithMeta: object | undefined,
    limits: Parameters<Client["request"]>[2] = {},
  ): Promise<unknown> {
    const { params, meta } = splitMeta(paramsWithMeta);
    const work = (deadline: Deadline): Promise<RawJson> =>
      this.#conversations.send(method, params, { ...toSpec(deadline), meta });
    return (await this.#deadlines.run(limits, work)).value;
  }

  forgetLists(part: Announced): void {
    // What is in a group is in no other list.
    this.groups.kept.invalidate();
    if (part === "groups") return (["tools", "prompts", "resources"] as const).forEach(this.lists.invalidate);
    this.lists.invalidate(part);
    if (part === "resources") this.skills.kept.invalidate();
  }

  /** Sends a request that only skills know, for the caller of an operation. */
  #requestFor(context: CallContext, method: string, params: RawJson | undefined): Promise<RawJson> {
    return this.#deadlines.run({ signal: context.signal }, (deadline) => {
      const meta = carriedMeta(context.meta, context.observation?.traceparent);
      return this.#conversations.send(method, params, { ...toSpec(deadline), meta });
    });
  }

  #takeLog({ method, params }: Notification): boolean {
    const event = method === "notifications/message" ? toLog(params) : undefined;
    if (event !== undefined) this.#options.onLog?.(event);
    return true;
  }

  #createConversations(): Conversations {
    const { reconnects = true, onLost = () => {} } = this.#options;
    return new Conversations({
      begin: (signal, notified) => this.#begin(signal, notified),
      // Deadlines stand still while a person signs in.
      signIn: (error) =>
        (this.#connector.signIn?.(error) ?? Promise.resolve(false)).finally(this.#deadlines.hold()),
      clock: this.#clock,
      reconnects,
      hasSessions: this.#connector.isHttp,
      onLost,
    });
  }

  async #begin(signal: AbortSignal, notified: (notification: Notification) => void): Promise<Conversation> {
    const options = this.#options;
    const { clientInfo = defaultInfo, eras = sharedEras, relays } = options;
    let conversation: Conversation | undefined;
    const events: LinkEvents = {
      notified: (notification) => {
        try {
          conversation?.take(notification);
        } catch (error) {
          // An error of a listener must not end the stream of announcements.
          this.#onWarning(`A listener failed: ${String(error)}`);
        }
      },
      asked: (request, asking) => this.#answer(request, asking),
    };
    const open: OpenLink = async () => {
      options.onOpen?.();
      return this.#connector.open(events);
    };
    const { link, agreement } = await negotiate(open, this.#connector.isHttp, {
      clientInfo,
      capabilities: withExtensions(this.#capabilities, ownExtensions(options, false)),
      eras,
      cacheKey: this.#connector.cacheKey,
      revision: options.revision,
      era: options.era,
      probeTimeoutMs: options.probeTimeoutMs ?? 3000,
      timeoutMs: options.connectTimeoutMs ?? 30_000,
      maxTotalMs: options.maxStartMs ?? 600_000,
      clock: this.#clock,
      signal,
    });
    // A modern server lists what the declared capabilities allow, and asks only the caller of a call: declare all of them.
    const isModern = agreement.mode.kind === "modern";
    const own = relays !== undefined && isModern ? everythingRelayable : this.#capabilities;
    const capabilities = withExtensions(own, ownExtensions(options, isModern));
    const speaker = { info: clientInfo, capabilities, clock: this.#clock };
    conversation = new Conversation(link, agreement, speaker, notified);
    return conversation;
  }

  /** Answers a legacy server: by the handlers, or by the caller that the question belongs to. */
  #answer(request: Request, asking: AbortSignal): Promise<RawJson> {
    const router = this.#router;
    if (router === undefined)
      return answerRequest(request, this.#handlers, asking).finally(this.#deadlines.hold());
    return (
      this.legacyTasks.answer(request, asking) ?? answerBy((ask, by) => router.ask(ask, by), request, asking)
    );
  }

  #createLists(request: PlainRequest): Lists {
    const { onListFault, relays } = this.#options;
    return createLists(() => this.#conversations.get(), request, {
      groupedIn: this.groups.definitionsOf,
      clock: this.#clock,
      maxTtlMs: 24 * 3_600_000,
      maxPages: 1000,
      maxItems: 100_000,
      // A gateway puts the tools of many servers into one list.
      maxTools: relays === undefined ? 100_000 : 10_000,
      maxBytes: 64 * 1024 * 1024,
      isHttp: this.#connector.isHttp,
      onListFault:
        onListFault ??
        (({ name, isLeftOut, reason }, method) => {
          if (isLeftOut) this.#onWarning(`Left out of ${method}: ${name}: ${reason}`);
        }),
    });
  }

  #createRecorded(): Recorded | undefined {
    const { audit } = this.#options;
    if (audit === undefined) return undefined;
    return createRecorded({
      audit: createAudit(audit, this.#clock),
      target: this.#connector.target,
      clock: this.#clock,
      agreement: () => this.#conversations.agreement,
    });
  }

  #createCalls(): ToolCalls {
    return createToolCalls({
      tasks: this.tasks,
      operations: this.#operations,
      check: createToolCheck(this.#onWarning),
      handlers: this.#handlers,
      recorded: this.#recorded,
      deadlines: this.#deadlines,
      clock: this.#clock,
      maxRounds: this.#maxRounds,
      validate: this.#options.validate ?? true,
    });
  }
}

/** What a server offers, from the agreement with it. */
function toOffers({ capabilities, mode }: Agreement): Offers {
  const { resources, prompts, completions, extensions } = capabilities;
  const declared = extensions === undefined ? {} : { extensions };
  const skills: { readonly directoryRead?: unknown } | undefined =
    resources && declaredExtension(declared, extensionIds.skills);
  const tasks = mode.kind === "modern" ? declaredExtension(declared, extensionIds.tasks) : undefined;
  const groups = mode.kind === "modern" ? declaredExtension(declared, extensionIds.groups) : undefined;
  const directoryRead = skills?.directoryRead === true;
  const has: { readonly [method: string]: unknown } = {
    "tools/list": true,
    "tools/call": true,
    "prompts/list": prompts,
    "prompts/get": prompts,
    "resources/list": resources,
    "resources/templates/list": resources,
    "resources/read": resources,
    "resources/subscribe": resources?.subscribe === true || undefined,
    "resources/unsubscribe": resources?.subscribe === true || undefined,
    "completion/complete": completions,
    "skills/list": skills,
    "skills/get": skills,
    "resources/directory/read": directoryRead || undefined,
    "groups/list": groups,
    "groups/get": groups,
    "tasks/get": tasks,
    "tasks/update": tasks,
    "tasks/cancel": tasks,
  };
  return {
    // Only the server knows the methods of an opened extension.
    serves: (method) => (methods.has(method) ? has[method] !== undefined : true),
    extensions: defined({
      [extensionIds.skills]: skills && (directoryRead ? { directoryRead } : {}),
      [extensionIds.groups]: groups,
      [extensionIds.tasks]: tasks && {},
    }),
  };
}
