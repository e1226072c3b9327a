import type { Awaitable } from "@junctor/core/async";
import type { CacheHints, Caller, Prompt, Resource, ResourceTemplate, Server } from "@junctor/core/mcp";
import type { CallContext, Provider } from "@junctor/core/provider";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type {
  anybody,
  Authenticated,
  AuthRefusal,
  AuthRequest,
  HttpListener,
  HttpOptions,
  ListenHttpOptions,
  NodeHandler,
} from "../http/index.ts";
import type {
  HandlerResult,
  InferredInput,
  InferredOutput,
  MemoryTasks,
  NoInput,
  OutputResult,
  PromptOutput,
  ReadResult,
  SchemaSource,
  SoundSchemas,
  ToolContext,
  ToolEvent,
  ToolSpec,
  ValueOf,
} from "../registry/index.ts";
import type { ServerInfo, ServerOptions } from "../wire/index.ts";
import type { Asking } from "./asking.ts";

/** Finds the user who sent a request; see `bearer`. On stdio it is called once, without a request. */
export type FindUser<Found> = (
  header: (name: string) => string | undefined,
  request?: AuthRequest,
) => Awaitable<Found>;

/** An app: what it is called, who may use it, and settings of its parts. */
export interface AppOptions<Found extends Authenticated> extends ServerInfo {
  /**
   * Finds the user who sent a request. Handlers get what it returns as `user`; the `name` identifies the user. Undefined refuses
   * the request, and `anybody` serves it without a user. Left out, everybody on this machine is served.
   */
  readonly user?: FindUser<Found>;
  /**
   * At least 32 characters. Processes that share it serve each other's sessions and answers. The default is `JUNCTOR_SECRET` of the
   * environment, or else a random secret. Several are for rotation: the first seals, all of them open.
   */
  readonly secret?: string | readonly string[];
  /** How HTTP is answered, such as `allowedHosts`. */
  readonly http?: Omit<HttpOptions, "authenticate" | "seal">;
  /** Limits of the server, such as `stateTtlMs`. */
  readonly server?: Omit<ServerOptions, "seal" | "onError">;
  /** How long clients may keep lists, and whether caches may share them. */
  readonly cacheHints?: CacheHints;
  /** Keeps the tasks of tools that run as tasks. */
  readonly tasks?: MemoryTasks;
  /** Skills, such as those of a folder; see `loadSkills`. */
  readonly skills?: Provider;
  /** Called for every error that was not meant for the caller; the default writes it to the standard error stream. */
  readonly onError?: (error: unknown, name: string) => void;
}

/** The user that handlers get, from what `user` returns. */
export type UserOf<Found> = Found extends typeof anybody | string
  ? Found extends string
    ? Caller
    : undefined
  : Found extends AuthRefusal | undefined
    ? never
    : Found;

/** What a handler gets besides its arguments: facts about the call, its user, and functions to ask with. */
export interface AppContext<User>
  extends Asking, Omit<ToolContext, "answers" | "state" | "ask" | "identity" | "emit" | "visited"> {
  /** Who is calling, as the app's `user` returned it. */
  readonly user: User;
  /** Reports where the work is: as the status of a task, or the progress of a call. */
  status(text: string): Promise<void>;
}

/** The context of completers and lists. */
export interface LookContext<User> extends Omit<CallContext, "ask" | "identity" | "emit" | "visited"> {
  readonly user: User;
}

/** A tool of an app: its definition, and whether it may run as a task. */
export interface AppToolSpec<Input extends SchemaSource, Output extends SchemaSource> extends ToolSpec<
  Input,
  Output
> {
  /** Gives the caller an id at once and the result later. `required` refuses callers that do not know tasks; `optional` lets them wait. */
  readonly task?: "optional" | "required";
}

/** What a tool's handler may return. */
export type ToolOutput<Output> = [Output] extends [never] ? HandlerResult : OutputResult<ValueOf<Output>>;

/** The code of a tool: a function, or a generator that yields events as they happen. */
export type AppToolHandler<Input, Output, User> = (
  args: InferredOutput<Input>,
  context: AppContext<User>,
) =>
  | Awaitable<ToolOutput<Output>>
  | AsyncGenerator<ToolEvent, ToolOutput<Output> | void>
  | Generator<ToolEvent, ToolOutput<Output> | void>;

/** Suggests values for what the user typed so far. */
export type Complete<User> = (
  typed: string,
  context: LookContext<User> & { readonly known: { readonly [name: string]: string } },
) => Awaitable<readonly string[]>;

/** A resource, or all resources whose URIs fit a template. */
export interface AppResourceSpec<Uri extends string, User> extends Partial<
  Omit<Resource & ResourceTemplate, "uri" | "uriTemplate">
> {
  /** Lists resources of the template: URIs, or resources with a name. */
  readonly list?: (context: LookContext<User>) => Awaitable<readonly (string | Resource)[]>;
  /** Completes variables of the template. */
  readonly complete?: { readonly [Name in VariableNames<Uri>]?: Complete<User> };
}

/** What a reader of a resource returns: text, bytes, contents in the protocol's form, or any other value, which is sent as JSON. */
export type ResourceOutput = ReadResult | object | number | boolean | null;

/** The code of a resource. */
export type AppResourceHandler<Uri extends string, User> = (
  variables: VariablesOf<Uri>,
  context: AppContext<User> & { readonly uri: string },
) => Awaitable<ResourceOutput>;

/** A prompt and its arguments. */
export interface AppPromptSpec<Args extends SchemaSource, User> extends Omit<Prompt, "name" | "arguments"> {
  /** The arguments, as a schema of an object. Callers send strings: write `z.coerce.number()` for a number. */
  readonly args?: Args;
  /** Completes arguments. */
  readonly complete?: { readonly [Name in keyof InferredInput<Args>]?: Complete<User> };
}

/** The code of a prompt. */
export type AppPromptHandler<Args, User> = (
  args: InferredOutput<Args>,
  context: AppContext<User>,
) => Awaitable<PromptOutput>;

/** The variables of a URI template, from its text. Those of `{x}` and `{+x}` are always there. */
export type VariablesOf<Uri extends string> = string extends Uri
  ? { readonly [name: string]: string }
  : { readonly [Name in AlwaysThere<Expressions<Uri>>]: string } & {
      readonly [Name in Exclude<VariableNames<Uri>, AlwaysThere<Expressions<Uri>>>]?: string;
    };

/** The names of the variables of a URI template. */
export type VariableNames<Uri extends string> = string extends Uri
  ? string
  : NamesIn<WithoutOperator<Expressions<Uri>>>;

type Expressions<Uri extends string> = Uri extends `${string}{${infer Expression}}${infer Rest}`
  ? Expression | Expressions<Rest>
  : never;
type AlwaysThere<Expression extends string> = Expression extends `${"#" | "." | "/" | "?" | "&"}${string}`
  ? never
  : NamesIn<WithoutOperator<Expression>>;
type WithoutOperator<Expression extends string> =
  Expression extends `${"+" | "#" | "." | "/" | "?" | "&"}${infer Names}` ? Names : Expression;
type NamesIn<Names extends string> = Names extends `${infer Name},${infer Rest}`
  ? Name | NamesIn<Rest>
  : Names;

/** The types of a tool for clients of the app: its arguments and its result. */
export type ToolTypes<Input, Output> = {
  readonly input: InferredInput<Input>;
  readonly output: [Output] extends [never]
    ? unknown
    : Output extends StandardSchemaV1
      ? InferredOutput<Output>
      : InferredOutput<Output>;
};

/** The ways an app is served. */
export interface Serving {
  /** The app ready for the wire; made when it is first needed. */
  readonly server: Server;
  /**
   * Answers a web request at any path: in Workers, Bun and Deno as the default export, in Next as `GET`, `POST` and `DELETE`, in Hono
   * with `(c) => app.fetch(c.req.raw)`. `JUNCTOR_SECRET` of the second argument, as Workers pass it, may be the secret.
   */
  readonly fetch: (request: Request, env?: unknown) => Promise<Response>;
  /**
   * Answers a request of `node:http` at any path: `http.createServer(app.node)`, `express.all("/mcp", app.node)`. If the framework parsed
   * the body and does not keep it in `request.body`, pass it as the third argument.
   */
  readonly node: NodeHandler;
  /** Listens on HTTP, by default at `http://127.0.0.1:7780/mcp`. Beyond loopback the app must have a `user`. */
  listen(options?: Omit<ListenHttpOptions, "authenticate" | "seal">): Promise<HttpListener>;
  /** Serves one client on standard input and output. Resolves when that client is gone. */
  stdio(): Promise<void>;
}

/** Tools, resources and prompts, and every way to serve them. Made by `createApp`. An app is a provider: `compose` takes it too. */
export interface App<User = undefined, Tools = object> extends Provider, Serving {
  /** The types of the tools, for clients of the app. It has no value. */
  readonly "~tools"?: Tools;
  /** Adds a tool. Throws at once for a bad or taken name, an unknown key, a missing handler, and a schema that cannot be used. */
  tool<
    const Name extends string,
    const Input extends SchemaSource = NoInput,
    const Output extends SchemaSource = never,
  >(
    name: Name,
    spec: AppToolSpec<Input, Output> & SoundSchemas<Input, Output>,
    handler: AppToolHandler<NoInfer<Input>, NoInfer<Output>, User>,
  ): App<User, Tools & { readonly [Key in Name]: ToolTypes<Input, Output> }>;
  /** Adds a resource at one URI, or all resources whose URIs fit an RFC 6570 template. The handler gets the template's variables. */
  resource<const Uri extends string>(
    uri: Uri,
    spec: AppResourceSpec<NoInfer<Uri>, User>,
    read: AppResourceHandler<NoInfer<Uri>, User>,
  ): App<User, Tools>;
  /** Adds a prompt. The handler returns the user's message as text, messages, or a whole result. */
  prompt<const Args extends SchemaSource = NoInput>(
    name: string,
    spec: AppPromptSpec<Args, User>,
    handler: AppPromptHandler<NoInfer<Args>, User>,
  ): App<User, Tools>;
  /** Notifies the subscribers of a resource that it changed. */
  updated(uri: string): void;
}
