// The shapes of the admin API, as docs/reference/admin-api.md has them.

export interface Status {
  readonly name: string;
  readonly version: string;
  readonly pid: number;
  readonly node: string;
  readonly startedAt: number;
  readonly uptimeMs: number;
  readonly state: "starting" | "ready" | "draining";
  readonly url?: string;
  readonly config?: string;
  readonly hasKeys: boolean;
  readonly servers: { readonly [status: string]: number };
  readonly calls: { readonly underway: number; readonly total: number; readonly failed: number };
  readonly sessions: number;
  readonly streams: number;
  readonly parked: number;
  readonly memoryBytes: number;
  readonly eventLoopDelayMs: number;
  readonly logLevel: string;
  readonly problems: number;
}

export type ServerState = "idle" | "starting" | "up" | "down" | "stopped" | "disabled";

export interface ListedFault {
  readonly part: string;
  readonly name: string;
  readonly reason: string;
}

export interface ServerInfo {
  readonly name: string;
  readonly status: ServerState;
  readonly kind: "command" | "http" | "local";
  readonly start?: string;
  readonly sharing?: string;
  readonly era?: "modern" | "legacy";
  readonly revision?: string;
  readonly says?: string;
  readonly tools?: number;
  readonly resources?: number;
  readonly prompts?: number;
  readonly inFlight?: number;
  readonly connectMs?: number;
  readonly sinceAt?: number;
  readonly restarts?: number;
  readonly canRestart?: boolean;
  readonly trouble?: string;
  readonly reason?: string;
  readonly code?: string;
  readonly advice?: string;
  readonly nextTryAt?: number;
  readonly said?: string;
  readonly stray?: string;
  readonly connections?: readonly {
    readonly reason: string;
    readonly status: string;
    readonly inUse: number;
  }[];
  readonly leftOut?: readonly ListedFault[];
  readonly mended?: readonly ListedFault[];
  readonly unapproved?: readonly { readonly part: string; readonly name: string; readonly why: string }[];
  readonly recent?: {
    readonly rate: readonly number[];
    readonly p50Ms: readonly (number | null)[];
    readonly stepMs: number;
  };
}

/** A JSON Schema, as far as the forms of this page look at it. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly enumNames?: readonly string[];
  readonly oneOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly items?: JsonSchema;
  readonly properties?: { readonly [name: string]: JsonSchema };
  readonly required?: readonly string[];
}

export interface ListedTool {
  readonly name: string;
  readonly server: string;
  readonly ownName: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema?: JsonSchema;
  readonly annotations?: { readonly [hint: string]: unknown };
}

export interface ListedPrompt {
  readonly name: string;
  readonly server: string;
  readonly description?: string;
  readonly arguments?: readonly {
    readonly name: string;
    readonly description?: string;
    readonly required?: boolean;
  }[];
}

export interface ListedResource {
  readonly uri: string;
  readonly server: string;
  readonly name?: string;
  readonly mimeType?: string;
}

export interface Catalog {
  readonly as?: string;
  readonly tools: readonly ListedTool[];
  readonly prompts: readonly ListedPrompt[];
  readonly resources: readonly ListedResource[];
  readonly templates: readonly {
    readonly uriTemplate: string;
    readonly server: string;
    readonly name?: string;
  }[];
  readonly collisions: readonly {
    readonly name: string;
    readonly owner: string;
    readonly others: readonly string[];
    readonly advice?: string;
  }[];
}

export interface CallerInfo {
  readonly name: string;
  /** Its calls underway. */
  readonly calls: number;
  readonly sessions: number;
  readonly parked: number;
  readonly tools: number;
  readonly isRevoked: boolean;
}

export interface Callers {
  readonly callers: readonly CallerInfo[];
  readonly unnamed: boolean;
}

export interface CallStep {
  readonly state: string;
  readonly atMs: number;
}

export interface Call {
  readonly id: string;
  readonly method: string;
  readonly tool?: string;
  /** The name of a prompt or the URI of a resource. */
  readonly name?: string;
  readonly server?: string;
  readonly caller?: string;
  readonly client?: string;
  readonly era?: string;
  readonly upstreamEra?: string;
  readonly transport?: string;
  readonly state: string;
  readonly at: number;
  readonly ms: number;
  readonly steps: readonly CallStep[];
  readonly outcome?: string;
  readonly code?: string;
  readonly delivery?: string;
  readonly bytesIn?: number;
  readonly bytesOut?: number;
  readonly traceId?: string;
  readonly isFromPage?: boolean;
}

/** What a call was given and gave, where that is recorded. */
export interface CallDetail extends Call {
  readonly arguments?: unknown;
  readonly result?: unknown;
  readonly cut?: boolean;
}

export interface Calls {
  readonly underway: readonly Call[];
  readonly recent: readonly Call[];
}

export interface Parked {
  readonly call: string;
  readonly server: string;
  readonly tool?: string;
  readonly caller?: string;
  readonly ageMs: number;
  readonly leftMs: number;
  readonly questions: readonly { readonly method: string; readonly message?: string }[];
  readonly waitsFor: "caller" | "server";
}

export interface ParkedCalls {
  readonly parked: readonly Parked[];
  readonly more: number;
}

export interface Session {
  readonly id: string;
  readonly caller?: string;
  readonly client?: string;
  readonly revision: string;
  readonly transport: string;
  readonly ageMs: number;
  readonly idleMs: number;
  readonly calls: number;
  readonly streams: number;
  readonly subscriptions: number;
}

export interface Sessions {
  readonly sessions: readonly Session[];
  readonly more: number;
}

export interface Series {
  readonly server?: string;
  readonly tool?: string;
  readonly rate: readonly number[];
  readonly errors: readonly number[];
  readonly p50Ms: readonly (number | null)[];
  readonly p99Ms: readonly (number | null)[];
}

export interface Charts {
  readonly stepMs: number;
  readonly endAt: number;
  readonly points: number;
  readonly series: readonly Series[];
}

export interface Problems {
  readonly problems: readonly {
    readonly severity: "error" | "warning";
    readonly where?: string;
    readonly message: string;
    readonly server?: string;
  }[];
  readonly waiting?: { readonly edits: readonly string[]; readonly version: string };
}

export interface LogLine {
  readonly seq: number;
  readonly at: number;
  readonly level: string;
  readonly text: string;
  readonly facts?: { readonly [name: string]: unknown };
}

export interface Question {
  readonly method: string;
  readonly params?: {
    readonly mode?: string;
    readonly message?: string;
    readonly url?: string;
    readonly requestedSchema?: JsonSchema;
  };
}
