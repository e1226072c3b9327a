import { systemClock, waitFor, type Deadline, Deadlines } from "@junctor/core/async";
import { type AuthorizationError, NotFoundError } from "@junctor/core/errors";
import type { ListFault, ListPart } from "@junctor/core/fit";
import type { RawJson } from "@junctor/core/json";
import {
  type CacheHints,
  carriedMeta,
  type Announced,
  announcedAs,
  declaredExtension,
  everythingRelayable,
  extensionIds,
  type Group,
  type Items,
  type LinkEvents,
  methods,
  type Part,
  type Implementation,
  type Prompt,
  type Resource,
  type ResourceTemplate,
  type Tool,
  type ToolResult,
} from "@junctor/core/mcp";
import { defined, packageVersion } from "@junctor/core/options";
import {
  type CallContext,
  createAudit,
  type Offers,
  type Operation,
  type Outcome,
  type Provider,
  toTrace,
} from "@junctor/core/provider";
import type { Notification } from "@junctor/core/rpc";
import { type Apps, createApps } from "./apps.ts";
import { createRecorded } from "./call-record.ts";
import { type ClientOptions, ownExtensions, withExtensions } from "./client-options.ts";
import { type Agreement, type Conversation, createConversation, toLog } from "./conversation.ts";
import { createConversations } from "./conversations.ts";
import { createEraCache } from "./era-cache.ts";
import { createGroups } from "./groups.ts";
import { answerRequest, capabilitiesOf } from "./handlers.ts";
import type { KeptList } from "./kept-list.ts";
import { createLegacyTasks, hasLegacyTasks } from "./legacy-tasks.ts";
import { type PlainRequest, createLists } from "./lists.ts";
import { type OpenLink, negotiate } from "./negotiate.ts";
import { Visits, answerBy, createOnBehalf, toSpec } from "./on-behalf.ts";
import { createOperations } from "./operations.ts";
import { QuestionRouter } from "./question-router.ts";
import { createReads, type ReadOptions, type Reads } from "./reads.ts";
import { type ClientSkills, createSkills } from "./skills.ts";
import { type CallPart, streamCall } from "./stream-call.ts";
import { type ClientTask, type StartedCall, createTasks } from "./tasks.ts";
import { type CallOptions, createToolCalls, splitMeta } from "./tool-calls.ts";
import { createToolCheck } from "./tool-check.ts";
import { createWatcher } from "./watcher.ts";

/** A server of any age, as a provider and for direct use. Made by `connect`; disposing it closes everything it opened. */
export interface Client extends Provider, Reads, Apps, AsyncDisposable {
  /** The agreement with the server; may change when it is connected to anew. */
  agreement(): Promise<Agreement>;
  listTools(options?: ReadOptions): Promise<readonly Tool[]>;
  /** Calls a tool and resolves with its result, also when that is an error; see {@link CallOptions.throwOnToolError}. */
  callTool(name: string, args?: object, options?: CallOptions): Promise<ToolResult>;
  /**
   * Calls a tool and gives what comes as it comes; the last thing is the result. Leaving the loop early gives the call up.
   *
   * @example
   * for await (const part of client.streamTool("countdown", { from: 3 })) console.log(part);
   */
  streamTool(name: string, args?: object, options?: CallOptions): AsyncGenerator<CallPart, void>;
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
  /** Every group of the server, nested ones too, with the names of what is in it. Needs the option `groups`. */
  listGroups(): Promise<readonly Group[]>;
  /**
   * Hears that a resource changed, or something below it, until the returned function is called. Rejects where the server tells of no
   * changes.
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
  const deadlines = new Deadlines(clock, relays?.limits ?? (() => ({ timeoutMs, maxTotalMs })));

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
          : (legacyTasks.answer(request, asking) ??
            answerBy((ask, by) => router.ask(ask, by), request, asking)),
    };
    const open: OpenLink = async () => {
      options.onOpen?.();
      return ways.open(events);
    };
    const { link, agreement } = await negotiate(open, ways.isHttp, {
      clientInfo,
      capabilities: withExtensions(capabilities, ownExtensions(options, false)),
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
    const declared = withExtensions(own, ownExtensions(options, isModern));
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
  const groups = createGroups({
    request: plain,
    agreement: async () => (await conversations.get()).agreement,
    isDeclared: options.groups === true,
    clock,
    onWarning,
  });
  const lists = createLists(conversations.get, plain, {
    groupedIn: groups.definitionsOf,
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
  const invalidate = (part: Announced): void => {
    // What is in a group is in no other list.
    groups.kept.invalidate();
    if (part === "groups") return (["tools", "prompts", "resources"] as const).forEach(lists.invalidate);
    lists.invalidate(part);
    if (part === "resources") skills.invalidate();
  };
  const watcher = createWatcher({
    conversations,
    request: plain,
    onChanged: ({ part }) => invalidate(announcedAs(part)),
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
  const legacyTasks = createLegacyTasks({ send, deadlines, clock });
  const operations = createOperations({
    conversations,
    tools: lists.tools,
    isHttp: ways.isHttp,
    declaresTasks: options.tasks === true,
    resultTypes: relays?.resultTypes,
  });
  const tasks = createTasks({ send: operations.send, deadlines, handlers, clock });
  const recorded =
    options.audit === undefined
      ? undefined
      : createRecorded({
          audit: createAudit(options.audit, clock),
          target: ways.target,
          clock,
          agreement: () => conversations.agreement,
        });
  const calls = createToolCalls({
    tasks,
    operations,
    check: createToolCheck(onWarning),
    handlers,
    recorded,
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
  if (agreement.mode.kind === "legacy" && Object.keys(capabilities).length > 0) watcher.onNews(() => {});
  const call = (name: string, args: object = {}, given: CallOptions = {}): Promise<ToolResult> =>
    calls.call(name, args, given);
  const makeFor = (operation: Operation, context: CallContext): Promise<Outcome> =>
    onBehalf(operation, context, (spec) => operations.send(operation, spec));
  let offered: { readonly by: Agreement; readonly offers: Offers } | undefined;
  const provider: Provider = {
    list: <P extends Part>(part: P, context: CallContext) => {
      const ofExtensions = part === "skills" ? skills.kept : part === "groups" ? groups.kept : undefined;
      const kept = (ofExtensions ?? lists[part as ListPart]) as unknown as KeptList<Items[P]>;
      return kept.fresh ?? waitFor(kept.get(), context);
    },
    call: (operation, context) => {
      const { method, name: tool, arguments: args } = operation;
      if (method === "skills/get" || method === "resources/directory/read")
        return skills.call(operation, (asked, params) =>
          deadlines.run({ signal: context.signal }, (deadline) => {
            const meta = carriedMeta(context.meta, context.observation?.traceparent);
            return send(asked, params, { ...toSpec(deadline), meta });
          }),
        );
      if (recorded === undefined || method !== "tools/call") return makeFor(operation, context);
      const trace = (): string | undefined => toTrace(context.meta?.at("traceparent")?.value);
      return recorded({ tool, args, caller: context.caller, trace }, async (tally) => {
        tally.bytesSent = args.byteLength;
        const outcome = await makeFor(operation, context);
        if (outcome.kind === "complete") tally.bytesReceived = outcome.result.byteLength;
        return outcome;
      });
    },
    ...(agreement.capabilities.resources?.subscribe === true
      ? {
          watch: async ({ part, name, ref }, { signal }, listener) => {
            if (ref !== undefined) throw new NotFoundError("task", ref);
            if (part !== "resources") throw new NotFoundError("resource", name);
            const end = await watcher.watch(name, listener);
            const stop = (): void => {
              signal.removeEventListener("abort", stop);
              end();
            };
            if (signal.aborted) stop();
            else signal.addEventListener("abort", stop);
            return stop;
          },
        }
      : {}),
    offers: () => {
      const last = conversations.agreement ?? agreement;
      if (offered?.by !== last) offered = { by: last, offers: toOffers(last) };
      return offered.offers;
    },
    onChange: (listener) =>
      watcher.onNews((news) => {
        if ("part" in news) listener(news);
      }),
  };
  const reads = createReads({ provider, handlers, capabilities, maxRounds, clock });
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
  const words: Omit<Client, keyof Provider> = {
    ...reads,
    skills: skills.skills,
    ...createApps({
      listTools: async () => (await lists.tools.get()).items,
      listResources: async () => (await lists.resources.get()).items,
      readResource: reads.readResource,
      call,
    }),
    agreement: async () => (await conversations.get()).agreement,
    listTools: async (limits = {}) => (await waitFor(lists.tools.get(), limits)).items,
    callTool: call,
    startTool: (name, args = {}, given = {}) => calls.start(name, args, given),
    callLegacyTask: relays !== undefined && hasLegacyTasks(agreement) ? legacyTasks.call : undefined,
    task: (ref) => tasks.task(ref),
    streamTool: (name, args, given) => streamCall((observed) => call(name, args, observed), given),
    get listHints() {
      return lists.hints();
    },
    get listFaults() {
      return lists.faults();
    },
    forgetLists: invalidate,
    availableTools: async () => (await lists.tools.get()).items.length > 0,
    listResources: async () => (await lists.resources.get()).items,
    listResourceTemplates: async () => (await lists.templates.get()).items,
    listGroups: async () => (await groups.kept.get()).items,
    listPrompts: async () => (await lists.prompts.get()).items,
    request: async (method, given, limits = {}) => {
      const { params, meta } = splitMeta(given);
      const work = (deadline: Deadline): Promise<RawJson> =>
        send(method, params, { ...toSpec(deadline), meta });
      return (await deadlines.run(limits, work)).value;
    },
    watchResource: (uri, onUpdated) => watcher.watch(uri, (notice) => onUpdated(notice.uri)),
    close,
    [Symbol.asyncDispose]: close,
  };
  return Object.defineProperties(provider, Object.getOwnPropertyDescriptors(words)) as Client;
}

/** What a server offers, by what was agreed with it. */
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
    // Whether an opened method is there, the server says.
    serves: (method) => (methods.has(method) ? has[method] !== undefined : true),
    extensions: defined({
      [extensionIds.skills]: skills && (directoryRead ? { directoryRead } : {}),
      [extensionIds.groups]: groups,
      [extensionIds.tasks]: tasks && {},
    }),
  };
}
