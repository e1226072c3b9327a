import type { Clock } from "@junctor/core/async";
import type { ClosedError } from "@junctor/core/errors";
import type { ListFault } from "@junctor/core/fit";
import {
  viewType,
  extensionIds,
  type Extensions,
  type Revision,
  type ClientCapabilities,
  type Implementation,
} from "@junctor/core/mcp";
import { keys, type KeysOf } from "@junctor/core/options";
import type { AuditOptions, CallEvent } from "@junctor/core/provider";
import type { EraCache } from "./era-cache.ts";
import type { QuestionHandlers } from "./handlers.ts";
import type { QuestionHabits } from "./question-habits.ts";

/** A client whose calls are made for others: what a server asks is asked of the caller it belongs to. */
interface RelayOptions {
  /** The capabilities that are declared to a legacy server on behalf of the callers. */
  readonly capabilities: ClientCapabilities;
  /** The extensions that are declared on their behalf: to a legacy server once, to a modern one for its lists. */
  readonly extensions?: Extensions;
  /** The ids of extensions that the config opened for the server, beside those that always pass. */
  readonly opened?: readonly string[];
  /** Types of results of tools that pass beside those of the protocol. */
  readonly resultTypes?: readonly string[];
  /** The name of the server, for messages to callers. */
  readonly server: string;
  /** Which requests of the server ask something; share one between the clients of a server. */
  readonly habits?: QuestionHabits;
  /** Whether each request names its caller to the server. For another replica of the same gateway only. */
  readonly tellsCaller?: boolean;
  /** Read for each request, so that they may change: instead of `timeoutMs` and `maxTotalMs` of the client. */
  readonly limits?: () => RelayLimits;
}

/** How long requests that are forwarded may take. */
export interface RelayLimits {
  readonly timeoutMs: number;
  readonly maxTotalMs: number;
  /** How long a caller may take to answer a legacy server while another call waits for its turn. */
  readonly answerWithinMs: number;
}

/** How a client behaves, whatever the way to its server. */
export interface ClientOptions {
  /** Who we say we are. */
  readonly clientInfo?: Implementation;
  /** What servers may ask of us. */
  readonly handlers?: QuestionHandlers;
  /** Instead of handlers, for a client that forwards the calls of others. */
  readonly relays?: RelayOptions;
  /** Whether a way that was lost is opened again when it is needed; true. */
  readonly reconnects?: boolean;
  /** Called before a link to the server is opened, which may start a process. If it throws, the link is not opened. */
  readonly onOpen?: () => void;
  /** Called when the link to the server was lost; never for HTTP, where each request stands alone. */
  readonly onLost?: (reason: ClosedError) => void;
  /** Speak this revision or none; by default the newest both sides know. */
  readonly revision?: Revision;
  /** The era that is tried first; the other one is spoken if the server does not know it. Modern when left out. */
  readonly era?: "modern" | "legacy";
  /** Share one between clients to probe each server once. */
  readonly eras?: EraCache;
  /** How long nothing may come during a call; 60 s. */
  readonly timeoutMs?: number;
  /** How long a call may take in all; 10 min. */
  readonly maxTotalMs?: number;
  /** How long connecting may take; 30 s. A server that is being started has more time while it is at work. */
  readonly connectTimeoutMs?: number;
  /** How long a server that is being started may take in all, however busy it is; 10 min. */
  readonly maxStartMs?: number;
  /** How long a pipe may be silent before its server is taken for a legacy one; 3 s. */
  readonly probeTimeoutMs?: number;
  /** Whether arguments and structured output are checked; true. */
  readonly validate?: boolean;
  /** Most rounds of questions in one call. */
  readonly maxRounds?: number;
  /**
   * Declares tasks to modern servers: a call of a tool may then become a task. `callTool` waits for its result all the same;
   * `startTool` does not. False when left out.
   */
  readonly tasks?: boolean;
  /** Declares that views of tools are shown; see `readView`. False when left out. */
  readonly views?: boolean;
  /** A draft: declares groups, and lists what is in them with everything else; see `listGroups`. False when left out. */
  readonly groups?: boolean;
  /** Where a record of each call goes, and what of its arguments. */
  readonly audit?: AuditOptions;
  /** Takes log messages that belong to no call. */
  readonly onLog?: (event: Extract<CallEvent, { kind: "log" }>) => void;
  /**
   * Called for each definition that was mended or left out because clients would refuse it, once as long as the list says the
   * same. By default `onWarning` is called for those left out.
   */
  readonly onListFault?: (fault: ListFault) => void;
  /** Called for faults of the server that do not fail a call. */
  readonly onWarning?: (text: string) => void;
  /** The clock that times are measured by; the system's by default. */
  readonly clock?: Clock;
  /** Aborting gives connecting up; afterwards it means nothing. */
  readonly signal?: AbortSignal;
}

export const clientOptionKeys: KeysOf<ClientOptions> = {
  ...keys("clientInfo handlers relays reconnects onOpen onLost revision era eras timeoutMs maxTotalMs"),
  ...keys("connectTimeoutMs maxStartMs onListFault probeTimeoutMs validate maxRounds audit onLog"),
  ...keys("onWarning clock signal tasks views groups"),
};

/** The extensions that a client declares by its options. Tasks and groups are for modern servers. */
export function ownExtensions(
  { relays, tasks, views, groups }: ClientOptions,
  isModern: boolean,
): Extensions {
  return {
    ...relays?.extensions,
    ...(tasks === true && isModern ? { [extensionIds.tasks]: {} } : {}),
    ...(views === true ? { [extensionIds.ui]: { mimeTypes: [viewType] } } : {}),
    ...(groups === true && isModern ? { [extensionIds.groups]: {} } : {}),
  };
}

/** Extensions are declared where there are some: an empty map would say nothing. */
export function withExtensions(
  capabilities: ClientCapabilities,
  extensions: Extensions | undefined,
): ClientCapabilities {
  const hasSome = extensions !== undefined && Object.keys(extensions).length > 0;
  return hasSome ? { ...capabilities, extensions } : capabilities;
}
