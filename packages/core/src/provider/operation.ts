import { andThen, type Awaitable, settled } from "../async/index.ts";
import { type Missing, RpcError } from "../errors/index.ts";
import {
  editMembers,
  joinJson,
  joinMembers,
  prependMembers,
  RawJson,
  withoutMembers,
} from "../json/index.ts";
import {
  type CallKind,
  type CompletionRef,
  type Items,
  type Method,
  methods,
  objectParam,
  type Part,
  stringParam,
  stringsParam,
} from "../mcp/index.ts";
import type { CallContext } from "./context.ts";
import type { Entry, Operation, Outcome, Provider, Round, Target } from "./provider.ts";

const noArguments = RawJson.fromText("{}");

interface OperationFacts {
  /** RawJson keeps its bytes; any other object is written as JSON. */
  readonly arguments?: object | undefined;
  readonly round?: Round | undefined;
  readonly ref?: string | undefined;
  readonly params?: RawJson | undefined;
}

/**
 * An operation for a provider that is used directly.
 *
 * @example
 * const outcome = await registry.call(createOperation("tools/call", "add", { arguments: { a: 1, b: 2 } }), createCallContext());
 */
export function createOperation(method: string, name: string, facts: OperationFacts = {}): Operation {
  const { arguments: args = noArguments, round, ref, params } = facts;
  return {
    method,
    part: methods.get(method)?.part,
    name,
    arguments: args instanceof RawJson ? args : RawJson.fromValue(args),
    round,
    ref,
    params,
  };
}

/** An operation that completes an argument or a variable. */
export function createCompletion(params: RawJson): Operation {
  const ref = readRef(objectParam(params, "ref"));
  const isPrompt = ref.type === "ref/prompt";
  return {
    method: "completion/complete",
    part: isPrompt ? "prompts" : "templates",
    name: isPrompt ? ref.name : ref.uri,
    arguments: params,
    round: undefined,
    ref: undefined,
    params,
  };
}

/**
 * The operation of a request whose method has a row and the verb `call`. Throws `-32602`
 * for params that do not fit.
 */
export function readOperation(row: Method, params: RawJson | undefined, round?: Round): Operation {
  const { method, part } = row;
  if (row.arguments === "params") {
    const completion = params ?? noArguments;
    assertCompletion(completion);
    return createCompletion(completion);
  }
  const name = stringParam(params, row.name ?? "name");
  const args = row.arguments === undefined ? undefined : readArguments(row.arguments, params);
  if (method === "prompts/get") stringsParam(params, "arguments");
  return { method, part, name, arguments: args ?? noArguments, round, ref: undefined, params };
}

function readArguments(
  member: "arguments" | "inputResponses",
  params: RawJson | undefined,
): RawJson | undefined {
  const args = objectParam(params, member);
  if (args === undefined && member === "inputResponses")
    throw new RpcError(
      "rpc.invalid_params",
      "Invalid params: inputResponses must be an object of answers by key",
    );
  return args;
}

function assertCompletion(params: RawJson): void {
  const argument = objectParam(params, "argument");
  stringParam(argument, "name");
  stringParam(argument, "value");
  stringsParam(objectParam(params, "context"), "arguments");
}

function readRef(ref: RawJson | undefined): CompletionRef {
  const type = stringParam(ref, "type");
  if (type === "ref/prompt") return { type, name: stringParam(ref, "name") };
  if (type === "ref/resource") return { type, uri: stringParam(ref, "uri") };
  throw new RpcError("rpc.invalid_params", "Invalid params: ref.type must be ref/prompt or ref/resource");
}

/** What a completion asks for. */
export interface Completion {
  readonly ref: CompletionRef;
  readonly argument: { readonly name: string; readonly value: string };
  /** Arguments that are already filled in. */
  readonly known: { readonly [name: string]: string };
}

/** Reads the completion that an operation asks for, under the name that the operation has. */
export function readCompletion({ part, name, arguments: params }: Operation): Completion {
  const argument = objectParam(params, "argument");
  return {
    ref: part === "prompts" ? { type: "ref/prompt", name } : { type: "ref/resource", uri: name },
    argument: { name: stringParam(argument, "name"), value: stringParam(argument, "value") },
    known: stringsParam(objectParam(params, "context"), "arguments"),
  };
}

/**
 * The members of params that belong to one hop; `task` is that of 2025-11-25, which each
 * client decides for itself.
 */
const ofHop = ["_meta", "requestState", "inputResponses", "task"];
const ofCall = ["name", "arguments", ...ofHop];

/**
 * The params of an operation for the next hop, without `_meta`: everything that came, with the name, the arguments and the round
 * that the operation has. The only place that writes names into params.
 */
export function toParams(operation: Operation): RawJson {
  const { method, name, arguments: args, ref, params } = operation;
  const row = methods.get(method);
  if (row === undefined) return withoutMembers(args, ["_meta"]);
  if (row.arguments === "params") return withRef(withoutMembers(args, ["_meta"]), name);
  const key = row.name ?? "name";
  const head = `"${key}":${JSON.stringify(ref ?? name)}`;
  const hasArguments = row.arguments === "arguments";
  const rest = roundMembers(row, operation);
  // Most params have only known members, and writing those anew costs less than cutting.
  if (params === undefined || params.hasOnly(hasArguments ? ofCall : [key, ...ofHop])) {
    if (!hasArguments) return joinJson([`{${head}`, ...rest, "}"]);
    return joinJson(
      rest.length === 0
        ? [`{${head},"arguments":`, args, "}"]
        : [`{${head},"arguments":`, args, ...rest, "}"],
    );
  }
  const isSameArguments = !hasArguments || params.holds("arguments", args);
  const cut = isSameArguments ? [key, ...ofHop] : ofCall;
  const bare = prependMembers(head, withoutMembers(params, cut));
  return withMore(bare, [...(isSameArguments ? [] : [`,"arguments":`, args]), ...rest]);
}

const noMembers: readonly string[] = [];

/** The answers and the state of a round, each with a comma before it. */
function roundMembers(row: Method, { arguments: args, round }: Operation): readonly (string | RawJson)[] {
  if (row.arguments === "inputResponses") return [',"inputResponses":', args];
  if (round === undefined) return noMembers;
  const { answers, latest = answers, state } = round;
  const hasAnswers = Object.keys(latest).length > 0;
  return [
    ...(hasAnswers ? [',"inputResponses":', joinMembers(latest)] : []),
    ...(typeof state === "string" ? [`,"requestState":${JSON.stringify(state)}`] : []),
  ];
}

/** An object with more members, each given with a comma before it. */
function withMore(object: RawJson, members: readonly (string | RawJson)[]): RawJson {
  if (members.length === 0) return object;
  const texts = members.map((member) => (typeof member === "string" ? member : member.text));
  return prependMembers(texts.join("").slice(1), object);
}

/** The params of a completion with another name for what it completes. Unknown members of `ref` stay. */
function withRef(params: RawJson, name: string): RawJson {
  const ref = params.at("ref");
  const key = ref?.at("type")?.value === "ref/prompt" ? "name" : "uri";
  if (ref === undefined || ref.at(key)?.value === name) return params;
  return editMembers(params, { ref: editMembers(ref, { [key]: RawJson.fromValue(name) }) });
}

/** What a request is for, as records, metrics and rules call it. */
export function kindOf({ method }: Pick<Operation, "method">): CallKind {
  return methods.get(method)?.kind ?? "method";
}

const things: { readonly [P in Part]: Missing } = {
  tools: "tool",
  prompts: "prompt",
  resources: "resource",
  templates: "resource",
  skills: "skill",
  groups: "group",
};

/** What errors call the thing that an operation is for. */
export function thingOf({ part }: Pick<Target, "part">): Missing {
  return part === undefined ? "tool" : things[part];
}

/** Finds one item of a provider by a name that a caller may use for it. */
export function findIn<P extends Part>(
  provider: Provider,
  part: P,
  name: string,
  context: CallContext,
): Awaitable<Entry<Items[P]> | undefined> {
  if (provider.find !== undefined) return settled(provider.find(part, name, context));
  return andThen(settled(provider.list(part, context)), (listing) => {
    const item = listing.get(name);
    return item && { key: name, item };
  });
}

/** Whether a request about a task is not work of its own: it only reads the task, or asks to end it. */
export function isLook({ ref, method }: Pick<Operation, "ref" | "method">): boolean {
  return ref !== undefined && method !== "tasks/update";
}

/** Whether a task can no longer change. */
export function hasTaskEnded({ kind }: Pick<Outcome, "kind">): boolean {
  return kind !== "working" && kind !== "input_required";
}
