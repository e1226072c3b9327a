/**
 * Between the shape with facets and the one without. Code that was converted takes a provider by {@link fromFacets} and gives one by
 * {@link withFacets}; both go when nothing has facets any more.
 */
import { andThen, type Awaitable, settled } from "../async/index.ts";
import { NotFoundError, RpcError } from "../errors/index.ts";
import { joinMembers, RawJson } from "../json/index.ts";
import {
  announcedAs,
  type CacheHints,
  type CompletionResult,
  definitionOf,
  extensionIds,
  type Items,
  methods,
  newestModernRevision,
  type Part,
  type Resource,
  type Skill,
} from "../mcp/index.ts";
import { type CallContext, createCallContext } from "./context.ts";
import { emptyListing, Listing } from "./listing.ts";
import type {
  CompletionRequest,
  OldChange,
  OldOutcome,
  OldProvider,
  ResourceProvider,
  SkillProvider,
  ToolCall,
  ToolOutcome,
} from "./old.ts";
import { createCompletion, createOperation, readCompletion } from "./operation.ts";
import type { CallerInfo, Notice, Offers, Operation, Outcome, Provider } from "./provider.ts";
import type { TaskProvider, TaskState } from "./task.ts";

const hidden: unique symbol = Symbol("provider");

/** A provider without facets, whatever shape it has. A spread copy of one that has both is of the old shape. */
export function fromFacets(given: OldProvider | Provider): Provider {
  if (Object.hasOwn(given, hidden)) return (given as unknown as { readonly [hidden]: Provider })[hidden];
  if ("list" in given && "call" in given) return given;
  return adapt(given);
}

/** Makes an object that takes the place of another known as a provider without facets: the other's, with some members changed. */
export function replaceProvider<T extends object>(
  object: T,
  of: OldProvider | Provider,
  change: (inner: Provider) => Partial<Provider> = () => ({}),
): T {
  const inner = fromFacets(of);
  return Object.defineProperty(object, hidden, { value: { ...inner, ...change(inner) }, enumerable: false });
}

function adapt(old: OldProvider): Provider {
  const listings = new WeakMap<readonly object[], Listing<object>>();
  const toListing = <T extends object>(items: readonly T[]): Listing<T> => {
    const meta = old.listMeta?.(items);
    const hints = old.cacheHints;
    const known = listings.get(items);
    if (known !== undefined && known.meta === meta && isSameHints(known.hints, hints))
      return known as Listing<T>;
    const listing = new Listing(items, { meta, hints });
    if (Object.isFrozen(items)) listings.set(items, listing);
    return listing;
  };
  const lists: {
    readonly [P in Part]: (context: CallContext) => Awaitable<readonly Items[P][]> | undefined;
  } = {
    tools: (context) => old.listTools(context),
    prompts: (context) => old.prompts?.listPrompts(context),
    resources: (context) => old.resources?.listResources(context),
    templates: (context) => old.resources?.listTemplates(context),
    skills: (context) => old.skills?.listSkills(context),
  };
  const provider: Provider = {
    list: (part, context) => {
      const listed = settled(lists[part](context));
      return listed === undefined
        ? emptyListing
        : (andThen(listed, (items) => items && toListing(items)) as never);
    },
    call: (operation, context) => callOld(old, operation, context),
    ...(old.toolNamed === undefined && old.listedName === undefined
      ? {}
      : {
          find: (part, name, context) => {
            if (part !== "tools")
              return andThen(settled(provider.list(part, context)), (listing) => {
                const item = listing.get(name);
                return item && { key: name, item };
              });
            return andThen(settled(old.listedName?.(name, context)), (listed) => {
              const key = listed ?? name;
              const found =
                old.toolNamed === undefined
                  ? andThen(settled(old.listTools(context)), (tools) =>
                      tools.find((tool) => tool.name === key),
                    )
                  : settled(old.toolNamed(key, context));
              return andThen(found, (item) => item && { key, item });
            }) as never;
          },
        }),
    ...(old.resources?.watch === undefined && old.tasks?.watch === undefined
      ? {}
      : { watch: (target, context, listener) => watchOld(old, target, context, listener) }),
    offers: (caller) => offersOf(old, caller),
    ...(old.onChange === undefined
      ? {}
      : {
          onChange: (listener) =>
            old.onChange?.((change) => {
              if (change.kind === "resource") return;
              const { kind, origin } = change;
              const { mayHear } = old;
              const isFor = mayHear && ((caller: CallerInfo) => mayHear.call(old, change, caller));
              listener({ part: kind, origin, isFor });
            }) ?? (() => {}),
        }),
  };
  return provider;
}

function isSameHints(one: CacheHints | undefined, other: CacheHints | undefined): boolean {
  return one?.ttlMs === other?.ttlMs && one?.cacheScope === other?.cacheScope;
}

function offersOf(old: OldProvider, caller: CallerInfo): Offers {
  const { resources, prompts, completion, tasks, skills } = old;
  const hasSkills = skills !== undefined && resources !== undefined;
  const has: { readonly [method: string]: boolean } = {
    "tools/list": true,
    "tools/call": true,
    "prompts/list": prompts !== undefined,
    "prompts/get": prompts !== undefined,
    "resources/list": resources !== undefined,
    "resources/templates/list": resources !== undefined,
    "resources/read": resources !== undefined,
    "resources/subscribe": resources?.watch !== undefined,
    "resources/unsubscribe": resources?.watch !== undefined,
    "completion/complete": completion !== undefined,
    "skills/list": hasSkills,
    "skills/get": hasSkills,
    "resources/directory/read": hasSkills && skills.readDirectory !== undefined,
    "tasks/get": tasks !== undefined,
    "tasks/update": tasks !== undefined,
    "tasks/cancel": tasks !== undefined,
  };
  return {
    serves: (method) =>
      methods.has(method)
        ? Object.hasOwn(has, method) && has[method] === true
        : old.methods?.has(method, createCallContext(caller)) === true,
    get extensions() {
      return {
        ...old.extensionsFor?.(caller.caller),
        ...(hasSkills
          ? { [extensionIds.skills]: skills.readDirectory === undefined ? {} : { directoryRead: true } }
          : {}),
        ...(tasks === undefined ? {} : { [extensionIds.tasks]: {} }),
      };
    },
  };
}

function callOld(old: OldProvider, operation: Operation, context: CallContext): Awaitable<Outcome> {
  const { method, name, arguments: args, round } = operation;
  const { resources, prompts, completion, skills } = old;
  switch (method) {
    case "tools/call":
      return andThen(settled(old.callTool({ name, arguments: args, round }, context)), fromOldOutcome);
    case "resources/read":
      if (resources === undefined) throw new NotFoundError("resource", name);
      return andThen(resources.readResource({ uri: name, round }, context), (outcome) =>
        outcome.kind === "complete" && old.cacheHints !== undefined
          ? { ...outcome, hints: old.cacheHints }
          : outcome,
      );
    case "prompts/get":
      if (prompts === undefined) throw new NotFoundError("prompt", name);
      return prompts.getPrompt(
        { name, arguments: args.value as { readonly [name: string]: string }, round },
        context,
      );
    case "completion/complete":
      if (completion === undefined) throw noMethod(method);
      return andThen(completion.complete(readCompletion(operation), context), (result) =>
        complete({ completion: result }),
      );
    case "skills/get":
      if (skills === undefined) throw noMethod(method);
      return andThen(skills.getSkill(name, context), (skill) => ({
        kind: "complete",
        result: RawJson.fromText(`{"skill":${definitionOf(skill).text}}`),
        hints: old.cacheHints,
      }));
    case "resources/directory/read":
      if (skills?.readDirectory === undefined) throw noMethod(method);
      return andThen(skills.readDirectory(name, context), (children) => ({
        ...complete({ resources: children }),
        hints: old.cacheHints,
      }));
    case "tasks/get":
    case "tasks/update":
    case "tasks/cancel":
      return callOldTask(old, operation, context);
    default:
      if (old.methods === undefined) throw noMethod(method);
      return andThen(settled(old.methods.serve(method, args, context)), (result) => ({
        kind: "complete",
        result,
      }));
  }
}

function noMethod(method: string): RpcError {
  return new RpcError("rpc.method_not_found", `Method not found: ${method}`);
}

function complete(value: object): Outcome {
  return { kind: "complete", result: RawJson.fromValue(value) };
}

const done: Outcome = { kind: "complete", result: RawJson.fromText("{}") };

function callOldTask(old: OldProvider, operation: Operation, context: CallContext): Awaitable<Outcome> {
  const { tasks } = old;
  const ref = operation.ref ?? "";
  if (tasks === undefined) throw new NotFoundError("task", ref);
  if (operation.method === "tasks/get") return andThen(settled(tasks.get(ref, context)), fromTaskState);
  if (operation.method === "tasks/cancel") return andThen(settled(tasks.cancel(ref, context)), () => done);
  const keys = Object.keys(operation.arguments.value as object);
  const answers = Object.fromEntries(keys.map((key) => [key, operation.arguments.at(key) as RawJson]));
  return andThen(settled(tasks.update(ref, answers, context)), () => done);
}

/** The outcome of a provider with facets as one without. */
function fromOldOutcome(outcome: ToolOutcome): Outcome {
  return outcome.kind === "task" ? fromTaskState(outcome.task) : outcome;
}

/** The state of a task as an outcome. */
export function fromTaskState(state: TaskState): Outcome {
  const { ref, message, createdAt, updatedAt, ttlMs, pollMs } = state;
  const task = { ref, message, createdAt, updatedAt, ttlMs, pollMs };
  switch (state.status) {
    case "completed":
      return { kind: "complete", result: state.result, task };
    case "failed":
      return { kind: "failed", error: state.error, task };
    case "input_required":
      return { kind: "input_required", asks: state.asks, task };
    case "working":
    case "cancelled":
      return { kind: state.status, task };
  }
}

/** The state of a task whose outcome this is. */
export function toTaskState(outcome: Outcome): TaskState {
  const { task } = outcome;
  if (task === undefined) throw new TypeError("The outcome is not that of a task");
  switch (outcome.kind) {
    case "complete":
      return { ...task, status: "completed", result: outcome.result };
    case "failed":
      return { ...task, status: "failed", error: outcome.error };
    case "input_required":
      return { ...task, status: "input_required", asks: outcome.asks };
    case "working":
    case "cancelled":
      return { ...task, status: outcome.kind };
  }
}

/** An outcome as providers with facets have it. */
function toOldOutcome(outcome: Outcome): ToolOutcome {
  if (outcome.task !== undefined) return { kind: "task", task: toTaskState(outcome) };
  if (outcome.kind === "complete" || outcome.kind === "input_required") return outcome;
  throw new TypeError("The outcome of a task has none");
}

function watchOld(
  old: OldProvider,
  { part, name, ref }: Pick<Operation, "part" | "name" | "ref">,
  context: CallContext,
  listener: (notice: Notice) => void,
): Awaitable<() => void> {
  if (ref !== undefined) {
    if (old.tasks?.watch === undefined) throw new NotFoundError("task", ref);
    return old.tasks.watch(ref, context, (task) => listener({ kind: "task", outcome: fromTaskState(task) }));
  }
  const { resources } = old;
  if (part !== "resources" || resources?.watch === undefined) throw new NotFoundError("resource", name);
  const hear = (change: OldChange): void => {
    if (change.kind !== "resource" || !covers(name, change.uri)) return;
    if (old.mayHear?.(change, context) !== false) listener({ kind: "updated", uri: change.uri });
  };
  return resources.watch(name, context).then((stop) => {
    const deafen = old.onChange?.(hear);
    return () => {
      deafen?.();
      stop();
    };
  });
}

/** A watch covers its URI and what lies below it. */
export function covers(watched: string, uri: string): boolean {
  if (uri === watched) return true;
  return uri.startsWith(watched.endsWith("/") ? watched : `${watched}/`);
}

/** A provider that has facets too, for code that was not converted. A spread copy of it has the facets alone. */
export function withFacets<P extends Provider>(provider: P): OldProvider {
  const offered = (): Offers => provider.offers(nobody);
  const serves = (method: string): boolean => offered().serves(method);
  const heard = new WeakMap<OldChange, (caller: CallerInfo) => boolean>();
  const listeners = new Set<(change: OldChange) => void>();
  const origins = new WeakMap<readonly object[], Listing<object>>();
  const list = <Q extends Part>(part: Q, context: CallContext): Awaitable<readonly Items[Q][]> =>
    andThen(settled(provider.list(part, context)), (listing) => {
      if (listing.items.length > 0 || Object.isFrozen(listing.items)) origins.set(listing.items, listing);
      hints = listing.hints;
      return listing.items;
    });
  let hints: CacheHints | undefined;
  const call = async (operation: Operation, context: CallContext): Promise<OldOutcome> => {
    const outcome = await provider.call(operation, context);
    if (outcome.kind === "complete" || outcome.kind === "input_required") return outcome;
    throw new TypeError("Only tools have tasks");
  };
  const resources: ResourceProvider = {
    listResources: async (context) => list("resources", context),
    listTemplates: async (context) => list("templates", context),
    readResource: ({ uri, round }, context) =>
      call(createOperation("resources/read", uri, { round }), context),
    ...(provider.watch === undefined
      ? {}
      : {
          watch: async (uri, context) =>
            (await provider.watch?.({ part: "resources", name: uri, ref: undefined }, context, (notice) => {
              if (notice.kind !== "updated") return;
              const change: OldChange = { kind: "resource", uri: notice.uri };
              heard.set(
                change,
                (caller) => caller.session === context.session && caller.caller === context.caller,
              );
              for (const tell of listeners) tell(change);
            })) ?? (() => {}),
        }),
  };
  const skills: SkillProvider = {
    listSkills: async (context) => list("skills", context),
    getSkill: async (uri, context) => {
      const outcome = await call(createOperation("skills/get", uri), context);
      if (outcome.kind !== "complete") throw new TypeError("A skill cannot ask its caller anything");
      return (outcome.result.value as { readonly skill: Skill }).skill;
    },
    ...(serves("resources/directory/read")
      ? {
          readDirectory: async (uri, context) => {
            const outcome = await call(createOperation("resources/directory/read", uri), context);
            if (outcome.kind !== "complete") throw new TypeError("A folder cannot ask its caller anything");
            return (outcome.result.value as { readonly resources: readonly Resource[] }).resources;
          },
        }
      : {}),
  };
  const old: OldProvider = {
    listTools: (context) => list("tools", context),
    callTool: (call: ToolCall, context) =>
      andThen(settled(provider.call(toOperation(call), context)), (outcome) =>
        outcome.task === undefined
          ? toOldOutcome(outcome)
          : toOldOutcome({ ...outcome, task: { ...outcome.task, ref: toRef(call.name, outcome.task.ref) } }),
      ),
    ...(provider.find === undefined
      ? {}
      : {
          toolNamed: (name, context) =>
            andThen(settled(provider.find?.("tools", name, context)), (entry) => entry?.item),
          listedName: (name, context) =>
            andThen(settled(provider.find?.("tools", name, context)), (entry) =>
              entry === undefined || entry.key === name ? undefined : entry.key,
            ),
        }),
    get resources() {
      return serves("resources/read") ? resources : undefined;
    },
    ...(serves("prompts/get")
      ? {
          prompts: {
            listPrompts: async (context) => list("prompts", context),
            getPrompt: ({ name, arguments: args, round }, context) =>
              call(createOperation("prompts/get", name, { arguments: args, round }), context),
          },
        }
      : {}),
    ...(serves("completion/complete")
      ? {
          completion: {
            complete: async (request, context) => {
              const outcome = await call(createCompletion(toCompletionParams(request)), context);
              if (outcome.kind !== "complete")
                throw new TypeError("A completion cannot ask its caller anything");
              return (outcome.result.value as { readonly completion: CompletionResult }).completion;
            },
          },
        }
      : {}),
    get tasks() {
      return serves("tasks/get") ? toOldTasks(provider) : undefined;
    },
    get skills() {
      return serves("skills/list") ? skills : undefined;
    },
    methods: {
      has: (method, context) => !methods.has(method) && provider.offers(context).serves(method),
      serve: async (method, params, context) => {
        const operation = createOperation(method, method, { arguments: params, params });
        const outcome = await call(operation, context);
        if (outcome.kind === "complete") return outcome.result;
        throw new TypeError("A method cannot ask its caller anything");
      },
    },
    extensionsFor: (caller) => provider.offers({ ...nobody, caller }).extensions ?? {},
    ...(provider.onChange === undefined && provider.watch === undefined
      ? {}
      : {
          onChange: (listener) => {
            const tell = (change: OldChange): void => listener(change);
            listeners.add(tell);
            const stop = provider.onChange?.(({ part, origin, isFor }) => {
              const change: OldChange = {
                kind: announcedAs(part),
                ...(origin === undefined ? {} : { origin }),
              };
              if (isFor !== undefined) heard.set(change, isFor);
              listener(change);
            });
            return () => {
              listeners.delete(tell);
              stop?.();
            };
          },
        }),
    mayHear: (change, caller) => heard.get(change.inner ?? change)?.(caller) !== false,
    listMeta: (items) => origins.get(items)?.meta,
    get cacheHints() {
      return hints;
    },
  };
  return Object.defineProperty(old, hidden, { value: provider, enumerable: false });
}

const nobody: CallerInfo = {
  caller: undefined,
  capabilities: {},
  revision: newestModernRevision,
  session: undefined,
};

/** A call of any kind as an operation. */
function toOperation({ kind, name, arguments: args, round, task }: ToolCall): Operation {
  const facts = { arguments: args, round };
  switch (kind) {
    case undefined:
    case "tool":
      return createOperation("tools/call", name, facts);
    case "prompt":
      return createOperation("prompts/get", name, facts);
    case "resource":
      return createOperation("resources/read", name, facts);
    case "completion":
      return { ...createCompletion(args), name };
    case "task":
      return createOperation(`tasks/${task?.wish ?? "get"}`, name, { ...facts, ref: task?.ref });
    case "method":
      return createOperation(name, name, { ...facts, params: args });
  }
}

function toCompletionParams({ ref, argument, known }: CompletionRequest): RawJson {
  const hasKnown = Object.keys(known).length > 0;
  return RawJson.fromValue({ ref, argument, ...(hasKnown ? { context: { arguments: known } } : {}) });
}

function toRef(tool: string, ref: string): string {
  return JSON.stringify([tool, ref]);
}

function parseRef(text: string): readonly [tool: string, ref: string] {
  try {
    const parts: unknown = JSON.parse(text);
    if (Array.isArray(parts) && parts.length === 2 && parts.every((part) => typeof part === "string"))
      return parts as unknown as readonly [string, string];
  } catch {
    // Not one of ours.
  }
  throw new NotFoundError("task", text);
}

function toOldTasks(provider: Provider): TaskProvider {
  const make = (
    method: string,
    text: string,
    context: CallContext,
    args?: RawJson,
  ): Awaitable<readonly [Outcome, string]> => {
    const [tool, ref] = parseRef(text);
    return andThen(
      settled(provider.call(createOperation(method, tool, { ref, arguments: args }), context)),
      (outcome) => [outcome, tool] as const,
    );
  };
  const named = (outcome: Outcome, ref: string): TaskState => ({ ...toTaskState(outcome), ref });
  const watch = provider.watch?.bind(provider);
  return {
    toolOf: (text) => {
      try {
        return parseRef(text)[0];
      } catch {
        return undefined;
      }
    },
    get: (ref, context) => andThen(make("tasks/get", ref, context), ([outcome]) => named(outcome, ref)),
    update: (ref, answers, context) =>
      andThen(make("tasks/update", ref, context, joinMembers(answers)), () => {}),
    cancel: (ref, context) => andThen(make("tasks/cancel", ref, context), () => {}),
    ...(watch === undefined
      ? {}
      : {
          watch: (text, context, listener) => {
            const [tool, ref] = parseRef(text);
            return watch({ part: "tools", name: tool, ref }, context, (notice) => {
              if (notice.kind === "task") listener(named(notice.outcome, text));
            });
          },
        }),
  };
}
