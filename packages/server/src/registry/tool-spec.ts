import type { Awaitable } from "@junctor/core/async";
import type { Visibility, Icon, Meta, ToolAnnotations, ToolResult } from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import type { InputRequired } from "@junctor/core/provider";
import { describeValue } from "@junctor/core/schema";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { AppView } from "./app-view.ts";
import type { EventStream, HandlerResult, OutputResult, StructuredValue, ToolContext } from "./event.ts";
import type { InferredInput, SchemaSource } from "./schema.ts";

/** The definition of a tool. */
export interface ToolSpec<Input extends SchemaSource, Output extends SchemaSource = SchemaSource> {
  /** The name for people. */
  readonly title?: string;
  /** What the tool does, for the model. */
  readonly description?: string;
  /** The arguments, as JSON Schema or any Standard Schema of an object; left out, the tool takes none. */
  readonly input?: Input;
  /** The schema of `structuredContent`. What the handler returns is checked against it. */
  readonly output?: Output;
  /** Hints about what the tool does to its surroundings, such as `readOnlyHint`. */
  readonly annotations?: ToolAnnotations;
  /** Pictures that clients may show. */
  readonly icons?: readonly Icon[];
  /** A page that hosts show beside the result; see `defineView`. */
  readonly view?: AppView;
  /** Who may use the tool: the model, views of this server, or both, which is the default. */
  readonly visibility?: readonly Visibility[];
  /** Further members for clients, under names of the form `vendor/name`. */
  readonly _meta?: Meta;
}

/** The settings of a tool that can run as a task. */
export interface TaskSpec<Arguments> {
  /**
   * `required` refuses callers that do not know tasks with `-32021`. `optional` serves them without a task: they wait for the
   * result.
   */
  readonly task: "optional" | "required";
  /** Asks before the task begins: the caller gets these questions as the answer to its call, and comes back with the answers. */
  readonly askFirst?: (args: Arguments, context: ToolContext) => Awaitable<InputRequired | undefined>;
}

/** What a handler may return for this `output`; without `output`, anything that can be a result. */
export type ResultFor<Output> = [Output] extends [never] ? HandlerResult : OutputResult<ValueOf<Output>>;

/** The value that a handler returns for `output`: the input side of the schema, whose transforms run after that. */
export type ValueOf<Output> = Output extends StandardSchemaV1
  ? InferredInput<Output>
  : Output extends { readonly type: NoString }
    ? StructuredValue
    : StructuredValue | string;

/** The types of JSON Schema other than `string`. */
type NoString = "object" | "array" | "number" | "integer" | "boolean" | "null";

/** What a handler may return if types cannot say whether it fits `output`: that is checked at run time. */
export type Handled<Output> =
  | ResultFor<Output>
  | ToolResult
  | Promise<ResultFor<Output> | ToolResult>
  | EventStream<ResultFor<Output> | ToolResult | void>;

/**
 * Accepts two kinds of results that are checked at run time: a whole `ToolResult`, such as that of another tool, and a stream
 * that may fail by an event and return nothing. For anything else it is `never`.
 */
export type CheckedLater<Returned, Output> = Returned extends
  | Generator<infer Event, infer End>
  | AsyncGenerator<infer Event, infer End>
  ? EndsLater<End, ResultFor<Output>, Extract<Event, { readonly type: "error" }>>
  : EndsLater<Awaited<Returned>, ResultFor<Output>, never>;

type EndsLater<End, Result, Failure> = ToolResult extends End
  ? unknown
  : [Failure] extends [never]
    ? never
    : [End] extends [Result | void]
      ? unknown
      : never;

/** Sources whose type shows that they describe an object, also inside a generic function. */
export type ObjectSource =
  | StandardSchemaV1<ArgumentsObject | undefined>
  | {
      readonly type: "object";
      readonly properties?: { readonly [name: string]: NoLibrarySchema | boolean };
      readonly "~standard"?: never;
    };

/** A list is not an object of arguments. */
type ArgumentsObject = object & { readonly [Symbol.iterator]?: never };

interface NoLibrarySchema {
  readonly "~standard"?: never;
}

/**
 * Accepts schemas that can be used. For any other it is a sentence, to which no schema is assignable: the compiler shows it as
 * the error.
 */
export interface SoundSchemas<Input, Output> {
  readonly input?: Input extends StandardSchemaV1
    ? ObjectOr<Input, "The input of a tool is an object: write z.object({ … }) around it">
    : ObjectJsonSchemaOr<
        Input,
        "This is not a schema: write z.object({ … }), or a JSON Schema with type: 'object'"
      >;
  readonly output?: SoundOutput<Output>;
}

/** Accepts an `output` that can be used. */
export type SoundOutput<Output> = Output extends StandardSchemaV1
  ? Output
  : JsonSchemaOr<Output, "This is not a schema: write z.object({ … }), or a JSON Schema">;

/** Looks at the output side if any input is accepted, as with `z.preprocess`. A schema of unknown type is checked when registered. */
type ObjectOr<Input extends StandardSchemaV1, Mistake> = StandardSchemaV1 extends Input
  ? Input
  : unknown extends StandardSchemaV1.InferInput<Input>
    ? IfObject<StandardSchemaV1.InferOutput<Input>, Input, Mistake>
    : IfObject<StandardSchemaV1.InferInput<Input>, Input, Mistake>;

/** A schema with a default accepts `undefined` too, although callers always send an object. */
type IfObject<Value, Input, Mistake> = [Value] extends [readonly unknown[] | undefined]
  ? Mistake
  : [Value] extends [object | undefined]
    ? Input
    : Mistake;

/** A document whose keys or `type` the compiler does not know is checked when it is registered. */
type ObjectJsonSchemaOr<Input, Mistake> = string extends keyof Input
  ? Input
  : Input extends { readonly type: infer Type extends string }
    ? "object" extends Type
      ? JsonSchemaOr<Input, Mistake>
      : Mistake
    : Mistake;

/** No keyword of JSON Schema holds a schema of a library, and no property of an object is one. */
type JsonSchemaOr<Source, Mistake> = string extends keyof Source
  ? Source
  : [Extract<Source[keyof Source] | PropertyOf<Source>, StandardSchemaV1>] extends [never]
    ? Source
    : Mistake;

type PropertyOf<Source> = Source extends { readonly properties: infer Properties }
  ? Properties[keyof Properties]
  : never;

const specKeys: KeysOf<ToolSpec<SchemaSource> & TaskSpec<never>> = keys(
  "title description input output annotations icons view visibility _meta task askFirst",
);

/** The names that other libraries have for these keys. */
const namesElsewhere: { readonly [key: string]: string } = {
  inputSchema: "input",
  parameters: "input",
  paramsSchema: "input",
  args: "input",
  arguments: "input",
  outputSchema: "output",
  returns: "output",
  meta: "_meta",
};

/** Checks at run time what the compiler checks. Throws a `TypeError` that says what to write instead. */
export function assertToolSpec(name: string, spec: unknown, handler: unknown): void {
  assertToolName(name);
  const what = `Tool ${JSON.stringify(name)}`;
  if (typeof spec === "function") {
    throw new TypeError(`${what}: the spec is missing; write register(${JSON.stringify(name)}, {}, handler)`);
  }
  if (typeof spec !== "object" || spec === null) {
    throw new TypeError(
      `${what}: the spec must be an object such as { description, input }, but is ${describeValue(spec)}`,
    );
  }
  assertKnownKeys(what, spec, specKeys, namesElsewhere);
  const { task } = spec as Partial<TaskSpec<never>>;
  if (task !== undefined && task !== "optional" && task !== "required")
    throw new TypeError(`${what}: task must be "optional" or "required", but is ${describeValue(task)}`);
  const { view, visibility } = spec as Partial<ToolSpec<SchemaSource>>;
  if (view !== undefined && typeof view?.resource?.uri !== "string")
    throw new TypeError(`${what}: view must be made by defineView({ uri, html })`);
  const isVisible =
    visibility === undefined ||
    (Array.isArray(visibility) &&
      visibility.length > 0 &&
      visibility.every((who) => who === "model" || who === "app"));
  if (!isVisible) throw new TypeError(`${what}: visibility must be ["model"], ["app"] or ["model", "app"]`);
  const { askFirst } = spec as Partial<TaskSpec<never>>;
  if (askFirst !== undefined && (task === undefined || typeof askFirst !== "function"))
    throw new TypeError(
      `${what}: askFirst must be a function, and needs task: "optional" or "required" beside it`,
    );
  assertHandler(what, handler);
}

/** Throws a `TypeError` for a spec of a prompt or resource that is not an object, with what to write. */
export function assertSpec(what: string, spec: unknown, example: string): asserts spec is object {
  if (typeof spec === "object" && spec !== null && !Array.isArray(spec)) return;
  const found =
    typeof spec === "function" ? "is missing" : `must be an object, but is ${describeValue(spec)}`;
  throw new TypeError(`${what}: the spec ${found}; write ${example}`);
}

/** Throws a `TypeError` if the handler is not a function. */
export function assertHandler(what: string, handler: unknown): void {
  if (typeof handler === "function") return;
  const found = handler === undefined ? "is missing" : `must be a function, but is ${describeValue(handler)}`;
  throw new TypeError(`${what}: the handler ${found}; write register(name, spec, handler)`);
}

const allowedName = /^[A-Za-z0-9_./-]{1,128}$/;

/** Throws unless the name is 1 to 128 of the characters every client accepts (2025-11-25, server/tools). */
export function assertToolName(name: string): void {
  if (allowedName.test(name)) return;
  throw new TypeError(
    `${JSON.stringify(name)} cannot name a tool: use 1 to 128 of the characters A-Z a-z 0-9 _ . / -`,
  );
}
