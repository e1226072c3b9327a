import type { Awaitable } from "../async/index.ts";
import type { ToolErrorCode } from "../errors/index.ts";
import type { RawJson } from "../json/index.ts";
import type {
  Extensions,
  CallKind,
  Skill,
  CacheHints,
  CompletionRef,
  CompletionResult,
  Prompt,
  Resource,
  ResourceTemplate,
  Tool,
} from "../mcp/index.ts";
import type { CallContext, CallEvent } from "./context.ts";
import type { CallerInfo, InputRequired, Round } from "./provider.ts";
import type { TaskOutcome, TaskProvider } from "./task.ts";

/** A request about a task: a look at it, answers to its questions, or the wish that it ends. */
export interface TaskRequest {
  readonly wish: "get" | "update" | "cancel";
  readonly ref: string;
}

/** One call of a tool; for middleware also one of a resource, a prompt, a completion or a task. */
export interface ToolCall {
  /** A tool when left out. */
  readonly kind?: CallKind | undefined;
  /** Of a resource, its URI; of a completion, what it completes; of a task, its tool; of a method, the method. */
  readonly name: string;
  /** An object, as the bytes that came. Of a completion, the params of its request; of a task, the answers by key; of a method, its params. */
  readonly arguments: RawJson;
  /** The operation, if the call is about a task. */
  readonly task?: TaskRequest | undefined;
  readonly round?: Round | undefined;
  /**
   * Set by middleware: the call is stopped with a `TimeoutError` when the provider takes longer, even if it does not
   * heed its signal. Of several, the smallest counts. Each round of a call that asks something has the whole time, and
   * waiting for an answer to a question takes none of it.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Set by middleware: changes what the call emits on its way to the caller, or drops it. Of several, that of the
   * innermost middleware comes first. One that throws keeps the event from the caller.
   */
  readonly mapEvent?: ((event: CallEvent) => CallEvent | undefined) | undefined;
}

/** How a request to a provider ends, short of failing. `result` has the shape the protocol gives it. */
export type OldOutcome =
  | {
      readonly kind: "complete";
      readonly result: RawJson;
      /** Set on a result that says why a tool was not run. For audits; it does not cross the wire. */
      readonly refusal?: ToolErrorCode;
    }
  | InputRequired;
/** How a call of a tool ends. A task is for callers that declared the extension, and for providers that have the facet. */
export type ToolOutcome = OldOutcome | TaskOutcome;

/** Something about a provider changed. */
export type OldChange = (
  | { readonly kind: "tools" | "prompts" | "resources" }
  | { readonly kind: "resource"; readonly uri: string }
) & {
  /** The provider it comes from, for one that is made of several. */
  readonly origin?: string;
  /** Where that provider heard it, if only some callers are concerned; see {@link OldProvider.mayHear}. */
  readonly connection?: object;
  /** The change as that provider reported it. */
  readonly inner?: OldChange;
};

/** A change of one resource. */
export type ResourceChange = Extract<OldChange, { readonly kind: "resource" }>;

/** The resources of a provider. */
export type { Answers, CallerInfo, InputRequired, Round } from "./provider.ts";
export type { CallKind } from "../mcp/index.ts";

/** The resources of a provider. */
export interface ResourceProvider {
  listResources(context: CallContext): Promise<readonly Resource[]>;
  listTemplates(context: CallContext): Promise<readonly ResourceTemplate[]>;
  /** Rejects with a `NotFoundError` for a URI it does not have. */
  readResource(request: ResourceRequest, context: CallContext): Promise<OldOutcome>;
  /** Makes sure changes of one resource are reported by `onChange` until the returned function is called. */
  watch?(uri: string, context: CallContext): Promise<() => void>;
}

export interface ResourceRequest {
  readonly uri: string;
  readonly round?: Round | undefined;
}

/** The prompts of a provider. */
export interface PromptProvider {
  listPrompts(context: CallContext): Promise<readonly Prompt[]>;
  getPrompt(request: PromptRequest, context: CallContext): Promise<OldOutcome>;
}

export interface PromptRequest {
  readonly name: string;
  readonly arguments: { readonly [name: string]: string };
  readonly round?: Round | undefined;
}

/** The skills of a provider (SEP-2640). Their files are among its resources, listed or not. */
export interface SkillProvider {
  /** A list that did not change is the same array. */
  listSkills(context: CallContext): Promise<readonly Skill[]>;
  /** The skill whose `SKILL.md` has this URI. Rejects with a `NotFoundError` where there is none. */
  getSkill(uri: string, context: CallContext): Promise<Skill>;
  /** The direct children of a folder. Rejects with a `NotFoundError` for a URI that is no folder. */
  readDirectory?(uri: string, context: CallContext): Promise<readonly Resource[]>;
}

/** Methods that the protocol does not have. */
export interface MethodProvider {
  has(method: string, context: CallContext): boolean;
  /** Params and result stay the bytes that came. Rejects with an `RpcError` for a method it does not have. */
  serve(method: string, params: RawJson, context: CallContext): Awaitable<RawJson>;
}

/** Completion of prompt arguments and template variables while a user types. */
export interface CompletionProvider {
  complete(request: CompletionRequest, context: CallContext): Promise<CompletionResult>;
}

export interface CompletionRequest {
  readonly ref: CompletionRef;
  readonly argument: { readonly name: string; readonly value: string };
  /** Arguments that are already filled in. */
  readonly known: { readonly [name: string]: string };
}

/**
 * The interface on the tool side: list and call. A registry, a composition, a client, an upstream and a
 * provider with middleware are all providers.
 *
 * A list that did not change is the same array: the server keeps its serialised form by identity. Lists have a
 * deterministic order, and depend on the caller but not on earlier calls.
 */
export interface OldProvider {
  listTools(context: CallContext): Awaitable<readonly Tool[]>;
  /** Rejects with a `NotFoundError` for a name it does not have. */
  callTool(call: ToolCall, context: CallContext): Awaitable<ToolOutcome>;
  /** One tool of the list, for those who need no more than that; else it is looked for in the list. */
  toolNamed?(name: string, context: CallContext): Awaitable<Tool | undefined>;
  /**
   * The name in the list for one that is not there but can be called: where a dialect allows such names, and for views, which know
   * the tools of their server by its own names. Asked before any middleware.
   */
  listedName?(name: string, context: CallContext): Awaitable<string | undefined>;
  readonly resources?: ResourceProvider | undefined;
  readonly prompts?: PromptProvider;
  readonly completion?: CompletionProvider;
  readonly tasks?: TaskProvider | undefined;
  readonly skills?: SkillProvider | undefined;
  readonly methods?: MethodProvider | undefined;
  /** The extensions that it offers to a caller beside those of its facets; asked when a caller gets to know the server. */
  extensionsFor?(caller: string | undefined): Extensions;
  /** Calls the listener on every change until the returned function is called. */
  onChange?(listener: (change: OldChange) => void): () => void;
  /** Whether a caller may hear of a change, asked for each; every caller may when left out. */
  mayHear?(change: OldChange, callerInfo: CallerInfo): boolean;
  /** More for the `_meta` of a list this provider gave, such as which parts of it are missing. Fixed for one array. */
  listMeta?(list: readonly object[]): { readonly [key: string]: unknown } | undefined;
  /** How long lists may be cached by those who asked; not at all when left out. Looked at for every new list. */
  readonly cacheHints?: CacheHints | undefined;
}
