import type { Awaitable } from "../async/index.ts";
import type { RpcError, ToolErrorCode } from "../errors/index.ts";
import type { RawJson } from "../json/index.ts";
import type { CacheHints, Extensions, Items, Part, Questions } from "../mcp/index.ts";
import type { CallContext } from "./context.ts";
import type { Listing } from "./listing.ts";

/** Answers to earlier questions, by the key they were asked under. Each is the bare result the client gave. */
export type Answers = { readonly [key: string]: RawJson };

/** What earlier rounds of a request left for this one. */
export interface Round {
  /** Every answer given so far. */
  readonly answers: Answers;
  /**
   * The answers of the last round only, for a provider that passes them on; the same
   * as `answers` when left out.
   */
  readonly latest?: Answers;
  /** What the provider attached to its question, exactly as it was. */
  readonly state: unknown;
}

/**
 * What a caller wants done: a tool called, a resource read, a task looked at. Made by `createOperation` and by servers. To change
 * one, spread it: `{ ...operation, name }`.
 */
export interface Operation {
  /** The method of the newest revision: `tools/call`. */
  readonly method: string;
  /** The list that `name` is in: whose it is and who may use it follow from the two. Undefined for a method of an extension that we do not know. */
  readonly part: Part | undefined;
  /**
   * What it is for, as this provider names it: a name or a URI; for a task, its tool; for a method that we do
   * not know, the method.
   */
  readonly name: string;
  /**
   * An object, as the bytes that came. For a completion and for a method that we do not know, the params; for
   * `tasks/update`, the answers.
   */
  readonly arguments: RawJson;
  readonly round: Round | undefined;
  /** Of a task: this provider's own name for it. */
  readonly ref: string | undefined;
  /**
   * The params as they came, for the members that we do not know; undefined for an operation that was made here. The members above
   * win over it: `toParams` writes them into it when the operation leaves the process.
   */
  readonly params: RawJson | undefined;
}

/** A provider cannot finish before its questions are answered. The request is made again, with the answers. */
export interface InputRequired {
  readonly kind: "input_required";
  /** May be empty: then it means "come back later". */
  readonly asks: Questions;
  /** Comes back unchanged in {@link Round.state}; the caller cannot read or alter it. JSON. */
  readonly state?: unknown;
  /** Whether the next round gets the answers of earlier ones too; true. */
  readonly keepsAnswers?: boolean;
}

/** A call of a tool that goes on after its request was answered. */
export interface Task {
  /** The provider's own name for it. Servers seal it for the caller, together with the name of the tool. */
  readonly ref: string;
  /** A few words on the work, for people. */
  readonly message?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** How long the task is kept from its creation; null for as long as its provider likes. */
  readonly ttlMs: number | null;
  /** How long a caller should wait before it looks again. */
  readonly pollMs?: number | undefined;
  /** The members that its server sent and that we do not know, as an object. */
  readonly more?: RawJson | undefined;
}

/** How an operation ended, or where its task is. A task that has completed is a complete outcome with `task` beside it. */
export type Outcome = (
  | {
      readonly kind: "complete";
      /** As the protocol has it for the method. */
      readonly result: RawJson;
      /** Set on a result that tells why a tool was not run. For audits; it does not cross the wire. */
      readonly refusal?: ToolErrorCode;
      /** How long it may be cached, where the result does not say. */
      readonly hints?: CacheHints | undefined;
    }
  | InputRequired
  /** Of tasks alone. */
  | { readonly kind: "working" | "cancelled" }
  /** Of tasks alone: any other failure is thrown. */
  | { readonly kind: "failed"; readonly error: RpcError }
) & {
  /** Set if the operation became a task, or was about one. Only callers that declared the extension get one. */
  readonly task?: Task | undefined;
};

/** The outcome of something that is or became a task. */
export type TaskOutcome = Outcome & { readonly task: Task };

/** An item of a list, and its owner. */
export interface Entry<Item> {
  /** The listed name or URI, which may differ from the one that was asked for. */
  readonly key: string;
  readonly item: Item;
  /** The server that it comes from, and what it is called there; for a provider that is made of several. */
  readonly server?: string | undefined;
  readonly ownName?: string | undefined;
}

/** A caller as far as lists and announcements depend on it. */
export type CallerInfo = Pick<CallContext, "caller" | "identity" | "capabilities" | "revision" | "session">;

/** A list changed. */
export interface Change {
  readonly part: Part;
  /** The provider it comes from, for one that is made of several. */
  readonly origin?: string | undefined;
  /**
   * Whether a caller may be told; every caller may when left out. Called when the change arrives, and again
   * before it is announced.
   */
  readonly isFor?: ((caller: CallerInfo) => boolean) | undefined;
}

/** What can be watched: a resource, or a task by its tool and its ref. */
export type Target = Pick<Operation, "part" | "name" | "ref">;

/** Something happened to what is watched. `params` are those of the notification that came, for the members we do not know. */
export type Notice =
  | { readonly kind: "updated"; readonly uri: string; readonly params?: RawJson | undefined }
  | { readonly kind: "task"; readonly outcome: Outcome };

/** What a provider offers to a caller. */
export interface Offers {
  /** Whether it serves a method: of the protocol, or of an extension that we do not know. */
  serves(method: string): boolean;
  /** The settings of the extensions that it has, by id. */
  readonly extensions?: Extensions | undefined;
}

/**
 * The interface: list, call, watch. A registry, a composition, a client, an upstream and a provider with middleware are all providers.
 *
 * Members may throw or reject. What is ready is returned without a promise. Lists depend on the caller, and not on earlier calls.
 */
export interface Provider {
  /** One list for a caller; empty for a list that it does not have. */
  list<P extends Part>(part: P, context: CallContext): Awaitable<Listing<Items[P]>>;
  /** Rejects with a `NotFoundError` for a name it does not have. */
  call(operation: Operation, context: CallContext): Awaitable<Outcome>;
  /** Finds an item by any name that callers may use for it, not only the listed one. When left out, the list is searched. */
  readonly find?:
    | (<P extends Part>(
        part: P,
        name: string,
        context: CallContext,
      ) => Awaitable<Entry<Items[P]> | undefined>)
    | undefined;
  /**
   * Reports what happens to a target until the returned function is called or the
   * context's signal is aborted.
   */
  readonly watch?:
    | ((target: Target, context: CallContext, listener: (notice: Notice) => void) => Awaitable<() => void>)
    | undefined;
  offers(caller: CallerInfo): Offers;
  /** Calls the listener on every change of a list until the returned function is called. */
  readonly onChange?: ((listener: (change: Change) => void) => () => void) | undefined;
}

/** A provider around another one. Each member is stated, so a wrapper that forgets one does not compile. */
export type Wrapper = { readonly [Member in keyof Required<Provider>]: Provider[Member] };
