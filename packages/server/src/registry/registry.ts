import { andThen, type Awaitable, recover, settled } from "@junctor/core/async";
import { NotFoundError, RpcError, ScopeError, ToolError } from "@junctor/core/errors";
import { RawJson, parseText } from "@junctor/core/json";
import {
  canShowViews,
  type CacheHints,
  type Content,
  type LogLevel,
  type Tool,
  type ToolResult,
} from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import {
  isInputRequired,
  noAnswers,
  readAnswers,
  failure,
  type CallContext,
  withContext,
  type Offers,
  type Operation,
  type Outcome,
  type Provider,
  type Round,
} from "@junctor/core/provider";
import { describeIssues, describeValue } from "@junctor/core/schema";
import { createViewFiles } from "./app-view.ts";
import {
  assertArguments,
  type EventStream,
  type HandlerResult,
  type ToolContext,
  type ToolHandler,
  drainEvents,
} from "./event.ts";
import { type NamedEntries, createNamedEntries, joinMembers } from "./members.ts";
import { type MemoryTasks, taskOffers } from "./memory-tasks.ts";
import type { InferredOutput, SchemaSource } from "./schema.ts";
import { type AnyJob, type Job, createTaskTools, type TaskHandler, toTaskContext } from "./task-tools.ts";
import {
  toFailureText,
  type NoInput,
  type OnToolError,
  toEntry,
  toJobEntry,
  type ToolEntry,
} from "./tool-entry.ts";
import {
  type CheckedLater,
  type Handled,
  type ObjectSource,
  type ResultFor,
  type SoundOutput,
  type SoundSchemas,
  type TaskSpec,
  type ToolSpec,
} from "./tool-spec.ts";

/** What a registry offers besides its tools, and who gets the errors of handlers. */
export interface RegistryOptions {
  /** Resources to offer; see `createResourceRegistry`. */
  readonly resources?: Provider;
  /** Prompts to offer; see `createPromptRegistry`. */
  readonly prompts?: Provider;
  /** Completes arguments of prompts and variables of templates; see `createCompletionRegistry`. */
  readonly completion?: Provider;
  /** How long clients may keep lists, and whether caches may share them. */
  readonly cacheHints?: CacheHints;
  /** Keeps the tasks of tools that run as tasks; by default a store with default limits. */
  readonly tasks?: MemoryTasks;
  /** Skills, such as those of a folder; see `loadSkills`. Their files are served as resources. */
  readonly skills?: Provider;
  /** Called for every error that was not a `ToolError`; the default writes it to the standard error stream. */
  readonly onError?: (error: unknown, tool: string) => void;
}

const registryOptionKeys: KeysOf<RegistryOptions> = keys(
  "resources prompts completion cacheHints tasks skills onError",
);

/** The tools of this process. Made by {@link createRegistry}. */
export interface Registry extends Provider {
  /**
   * Adds a tool that can run as a task: its caller gets an id at once, and asks for the result later.
   *
   * @example
   * registry.register("report", { task: "optional" }, async (_, { status }) => {
   *   await status("collecting");
   *   return "done";
   * });
   */
  register<const Input extends SchemaSource = NoInput, const Output extends SchemaSource = never>(
    name: string,
    spec: ToolSpec<Input, Output> & TaskSpec<NoInfer<InferredOutput<Input>>> & SoundSchemas<Input, Output>,
    handler: NoInfer<TaskHandler<InferredOutput<Input>, ResultFor<Output>>>,
  ): void;
  /**
   * Adds a tool. What the handler returns, and what a generator returns at its end, must fit `output`. Throws at once for a
   * bad or taken name, an unknown key of the spec, a missing handler and a schema that cannot be used.
   *
   * @example
   * registry.register("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b);
   */
  register<const Input extends ObjectSource = NoInput, const Output extends SchemaSource = never>(
    name: string,
    spec: ToolSpec<Input, Output> & { readonly output?: SoundOutput<Output> },
    handler: NoInfer<ToolHandler<InferredOutput<Input>, ResultFor<Output>>>,
  ): void;
  /** Adds a tool whose result is checked against `output` at run time only, such as a whole result of another tool. */
  register<
    const Input extends ObjectSource = NoInput,
    const Output extends SchemaSource = never,
    Returned extends Handled<Output> = never,
  >(
    name: string,
    spec: ToolSpec<Input, Output> & { readonly output: SoundOutput<Output> } & CheckedLater<Returned, Output>,
    handler: (args: NoInfer<InferredOutput<Input>>, context: ToolContext) => Returned,
  ): void;
  /** Adds a tool whose schemas are known at run time only. The compiler shows the error of this overload. */
  register<const Input extends SchemaSource = NoInput, const Output extends SchemaSource = never>(
    name: string,
    spec: ToolSpec<Input, Output> & SoundSchemas<Input, Output>,
    handler: NoInfer<ToolHandler<InferredOutput<Input>, ResultFor<Output>>>,
  ): void;
  /**
   * Adds a tool that starts a job elsewhere. Callers that do not know tasks get `-32021`. Give the server a `seal` with a
   * secret, so that the ids of jobs survive a restart.
   */
  registerJob<State, const Input extends SchemaSource = NoInput, const Output extends SchemaSource = never>(
    name: string,
    spec: ToolSpec<Input, Output> & SoundSchemas<Input, Output>,
    job: Job<NoInfer<InferredOutput<Input>>, State, NoInfer<ResultFor<Output>>>,
  ): void;
  /** Removes a tool; running calls go on. False when there was none. */
  unregister(name: string): boolean;
}

/**
 * An empty registry. Give it other registries to offer resources, prompts and completion as well: what is not given is not
 * declared to clients.
 *
 * @example
 * const registry = createRegistry();
 * registry.register("hello", { description: "Greets" }, () => "Hello!");
 */
export function createRegistry(options: RegistryOptions = {}): Registry {
  assertOptions(options);
  const { cacheHints, onError = writeError } = options;
  const views = createViewFiles();
  // If several members have the same name, the first one wins.
  const { skills, resources, prompts, completion } = options;
  const members = [views, skills, resources, prompts, completion].filter((member) => member !== undefined);
  const catalog: NamedEntries<ToolEntry, Tool> = createNamedEntries(
    "The tool",
    "tools",
    (entry) => entry.tool,
    cacheHints,
  );
  const taskTools = createTaskTools({
    tasks: options.tasks,
    findJob: (name) => catalog.entries.get(name)?.mode?.job,
  });
  const runner = new ToolRunner(taskTools, onError);
  let hasTasks = options.tasks !== undefined;

  const add = (name: string, entry: ToolEntry): void => {
    if (entry.view !== undefined) views.add(entry.view);
    catalog.add(name, entry);
    hasTasks ||= entry.mode !== undefined;
  };

  const others = joinMembers(members, cacheHints);
  const offers: Offers = {
    serves: (method) =>
      method === "tools/list" ||
      method === "tools/call" ||
      (hasTasks && taskOffers.serves(method)) ||
      others.offers.serves(method),
    get extensions() {
      return hasTasks ? { ...others.offers.extensions, ...taskOffers.extensions } : others.offers.extensions;
    },
  };
  return {
    list: (part, context) => (part === "tools" ? (catalog.list() as never) : others.list(part, context)),
    call: (operation, context) => {
      if (operation.method !== "tools/call")
        return taskOffers.serves(operation.method)
          ? taskTools.call(operation, context)
          : others.call(operation, context);
      const entry = catalog.entries.get(operation.name);
      if (entry === undefined) return Promise.reject(new NotFoundError("tool", operation.name));
      return runner.call(entry, operation, context);
    },
    find: (part, name, context) => {
      if (part !== "tools") return others.find(part, name, context);
      const item = catalog.entries.get(name)?.tool;
      return (item && { key: name, item }) as never;
    },
    watch: (target, context, listener) =>
      (target.ref === undefined ? others : taskTools).watch(target, context, listener),
    offers: () => offers,
    onChange: (listener) => {
      const stops = [catalog, ...members].map((source) => source.onChange?.(listener));
      return () => stops.forEach((stop) => stop?.());
    },
    register: (name: string, spec: ToolSpec<SchemaSource>, handler: unknown) =>
      add(name, toEntry(name, spec, handler as ToolHandler<never>)),
    registerJob: (name: string, spec: ToolSpec<SchemaSource>, job: unknown) =>
      add(name, toJobEntry(name, spec, job as AnyJob, onError)),
    unregister: (name: string) => catalog.remove(name),
  };
}

/** Runs the handlers of tools, and turns what they return and throw into outcomes. */
class ToolRunner {
  readonly #taskTools: ReturnType<typeof createTaskTools>;
  readonly #onError: OnToolError;

  constructor(taskTools: ReturnType<typeof createTaskTools>, onError: OnToolError) {
    this.#taskTools = taskTools;
    this.#onError = onError;
  }

  call(entry: ToolEntry, operation: Operation, context: CallContext): Awaitable<Outcome> {
    return this.#rescue(operation, context, () =>
      andThen(entry.input.check(freshArguments(operation)), (checked) =>
        checked.ok
          ? this.#start(entry, operation, checked.value as never, context)
          : { ...complete(failure(describeIssues(checked.issues))), refusal: "tool.invalid_arguments" },
      ),
    );
  }

  #start(entry: ToolEntry, operation: Operation, args: never, context: CallContext): Awaitable<Outcome> {
    const toolContext = toToolContext(operation.round, context);
    if (entry.mode === undefined) return this.#handle(entry, args, toolContext);
    return this.#taskTools.start({
      mode: entry.mode,
      operation,
      args,
      context: toolContext,
      run: (again, own, running) =>
        this.#rescue(again, own, () =>
          this.#handle(entry, args, toTaskContext(toToolContext(again.round, own), running)),
        ),
    });
  }

  #handle(entry: ToolEntry, args: never, context: ToolContext): Awaitable<Outcome> {
    const returned = entry.handler(args, context);
    if (isEventStream(returned)) return this.#runStream(entry, returned, context);
    return andThen(settled(returned), (value) => this.#toOutcome(entry, value, []));
  }

  async #runStream(entry: ToolEntry, events: EventStream, context: CallContext): Promise<Outcome> {
    const end = await drainEvents(events, (event) => context.emit(event), context.signal);
    if (end.kind === "failed") return complete(failure(end.message));
    return this.#toOutcome(entry, end.value, end.streamed);
  }

  #toOutcome(entry: ToolEntry, value: HandlerResult, streamed: readonly Content[]): Awaitable<Outcome> {
    if (typeof value === "string" && streamed.length === 0 && entry.output === undefined)
      return { kind: "complete", result: toTextResult(value) };
    if (isInputRequired(value)) return value;
    return andThen(entry.toResult(value, streamed, this.#onError), complete);
  }

  /** Turns an error of a handler into a result for the model, unless the error is for the protocol or the call was aborted. */
  #rescue({ name }: Operation, context: CallContext, work: () => Awaitable<Outcome>): Awaitable<Outcome> {
    return recover(work, (error: unknown): Outcome => {
      if (error instanceof RpcError || error instanceof ScopeError || context.signal.aborted) throw error;
      if (!(error instanceof ToolError)) this.#onError(error, name);
      return complete(failure(toFailureText(error, name)));
    });
  }
}

/** The method that each option must have, and what creates the option. */
const parts: readonly (readonly [key: keyof RegistryOptions, method: string, maker: string])[] = [
  ["resources", "list", "createResourceRegistry()"],
  ["prompts", "list", "createPromptRegistry()"],
  ["completion", "list", "createCompletionRegistry()"],
  ["tasks", "start", "createMemoryTasks()"],
  ["skills", "list", "await loadSkills(folder)"],
];

function assertOptions(options: RegistryOptions): void {
  assertKnownKeys("createRegistry", options, registryOptionKeys);
  for (const [key, method, maker] of parts) {
    const part = options[key] as { readonly [method: string]: unknown } | undefined;
    if (part !== undefined && typeof part?.[method] !== "function")
      throw new TypeError(`createRegistry: ${key} is ${describeValue(part)}; write { ${key}: ${maker} }`);
  }
  const { cacheHints: hints, onError } = options;
  const isScope = hints?.cacheScope === "public" || hints?.cacheScope === "private";
  if (hints !== undefined && !(isScope && Number.isSafeInteger(hints.ttlMs) && hints.ttlMs >= 0))
    throw new TypeError('createRegistry: cacheHints must be such as { ttlMs: 60000, cacheScope: "public" }');
  if (onError !== undefined && typeof onError !== "function")
    throw new TypeError(`createRegistry: onError must be a function, but is ${describeValue(onError)}`);
}

/** The context of a handler: that of the call, with the answers of earlier rounds and two functions that emit. */
export function toToolContext(round: Round | undefined, context: CallContext): ToolContext {
  return withContext(context, {
    answers: round === undefined ? noAnswers : readAnswers(round),
    state: round?.state,
    canShow: () => canShowViews(context.capabilities),
    progress: (progress: number, total?: number, message?: string) => {
      // Any number is accepted: NaN and Infinity are dropped when the event is sent.
      const isRight =
        typeof progress === "number" &&
        (total === undefined || typeof total === "number") &&
        (message === undefined || typeof message === "string");
      if (!isRight)
        assertArguments("progress(number, total, message)", { type: "progress", progress, total, message });
      return context.emit({
        kind: "progress",
        progress,
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message }),
      });
    },
    log: (level: LogLevel, data: unknown, logger?: string) => {
      assertArguments("log(level, data, logger)", { type: "log", level, data, logger });
      return context.emit({ kind: "log", level, data, ...(logger === undefined ? {} : { logger }) });
    },
  });
}

/** Whether a handler's return value is a stream of events: what `function*` and `async function*` give. */
export function isEventStream(value: unknown): value is EventStream {
  if (typeof value !== "object" || value === null || !("next" in value)) return false;
  return (Symbol.asyncIterator in value || Symbol.iterator in value) && "return" in value;
}

/** Parses the arguments again for every attempt: a handler may change them, and the next must not see that. */
function freshArguments({ arguments: args }: Operation): unknown {
  return parseText(args.text);
}

/** Writes the result of one string by hand: it is fast, and most tools answer like this. */
function toTextResult(value: string): RawJson {
  const json = `{"content":[{"type":"text","text":${JSON.stringify(value)}}]}`;
  return RawJson.fromValue({ content: [{ type: "text", text: value }] }, json);
}

function complete(result: ToolResult): Extract<Outcome, { readonly kind: "complete" }> {
  return { kind: "complete", result: RawJson.fromValue(result) };
}

function writeError(error: unknown, tool: string): void {
  console.error(`The tool ${tool} failed:`, error);
}
