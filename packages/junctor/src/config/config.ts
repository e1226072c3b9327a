import type { CallerLimits } from "@junctor/core/async";
import type { Separator } from "@junctor/core/compose";
import type { ConfigIssue } from "@junctor/core/errors";
import type { ServerCard } from "@junctor/core/mcp";
import type { TlsOptions } from "@junctor/server";
import type { TrunkConfig } from "../cluster/index.ts";
import type { IssuerOptions } from "../tokens/index.ts";
import type { OAuthConfig } from "./oauth-config.ts";
import type { ProfileConfig } from "./profile-config.ts";
import type { SandboxConfig } from "./sandbox-config.ts";

export type { ConfigIssue } from "@junctor/core/errors";

/** How one MCP server is reached. */
export type ServerLaunch =
  | {
      readonly kind: "command";
      readonly command: string;
      readonly args: readonly string[];
      readonly env: { readonly [name: string]: string };
      readonly cwd: string | undefined;
      /** The absolute path of the file with more variables, which are in `env` too. */
      readonly envFile?: string;
    }
  | {
      readonly kind: "http";
      readonly url: string;
      readonly headers: { readonly [name: string]: string };
      /** `sse`: HTTP+SSE of 2024-11-05 and nothing else. */
      readonly transport: "auto" | "sse";
    };

/** How one tool of a server is changed or left out. */
export interface ToolRule {
  readonly name?: string;
  readonly description?: string;
  readonly hide?: boolean;
}

/** An extension that the gateway does not know and passes on for one server. */
export interface OpenedExtension {
  /** Globs on the methods that callers may use. */
  readonly methods: readonly string[];
  /** Types of results of tools, beside those of the protocol. */
  readonly resultTypes: readonly string[];
}

/** One MCP server, with everything that was left out filled in. */
export interface ServerConfig {
  readonly name: string;
  readonly launch: ServerLaunch;
  /** Undefined: its process may do all that this user may. */
  readonly sandbox: SandboxConfig | undefined;
  /** `eager` (the default) starts with the gateway, `lazy` with the first use. */
  readonly start: "eager" | "lazy";
  /** Whether clients share one connection (the default), have one each, or one for each call. */
  readonly sharing: "shared" | "perSession" | "exclusive";
  /** The era it is spoken to in, if it knows both and a process is shared; modern. */
  readonly era: "modern" | "legacy";
  /** How many processes callers are spread over where they share; 1. */
  readonly instances: number;
  /** How often it runs where the gateway has several replicas; by its kind when undefined, see `placementOf`. */
  readonly placement: "single" | "each" | undefined;
  /** Whether each project has a process of its own in the daemon: as the launch looks (the default), always, or never. */
  readonly workspace: "auto" | "each" | "shared";
  /** What its names begin with: its own name, made fit, unless said otherwise. `false`: nothing. */
  readonly prefix: string | false;
  /** How long it may take to start without a sign of progress; 30 s. */
  readonly startTimeoutMs: number;
  /** How long it may take to start in all; 10 min. */
  readonly maxStartMs: number;
  /** How long a call may be silent; 5 min. */
  readonly timeoutMs: number;
  /** How long a call may take in all; 30 min. */
  readonly maxTotalMs: number;
  /** How long a modern caller may take to answer a question while other calls wait for its call to end; 30 s. */
  readonly answerWithinMs: number;
  /** Whether tools that need a task are called for callers that know none, which is the default, or refused to them. */
  readonly tasks: "hold" | "relay";
  /** Most connections of a server that is not shared; 8. */
  readonly maxConnections: number;
  /** Lazy servers only: stopped after this long without use. */
  readonly idleStopMs: number | undefined;
  /** Globs on the server's own tool names; none means all. */
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  readonly tools: { readonly [ownName: string]: ToolRule };
  /** Whether tools that say they only read may be called by `call_read_tool` of a search; false. */
  readonly trustHints: boolean;
  /** About how many tokens a result may be, of all its tools or by glob on its own names, the first that fits. Undefined: any number. */
  readonly maxResultTokens: number | { readonly [glob: string]: number } | undefined;
  /** Whether the audit has the arguments of its calls; as the audit's own setting says when left out. */
  readonly audit: { readonly arguments?: boolean };
  /** Extensions that the gateway does not know and passes on for this server, by their ids; none. */
  readonly extensions: { readonly [id: string]: OpenedExtension };
  /** Undefined: a server that wants OAuth says all that is needed itself. */
  readonly oauth: OAuthConfig | undefined;
  /** Whose account its calls use: one for all callers (the default), or each caller's own. */
  readonly credentials: "shared" | "perCaller";
  /** Whether the admin API shows arguments and results of its calls; no. */
  readonly record: boolean;
  /** Exact names of tools, from `enabledTools` and its like in the entry; undefined means all. */
  readonly onlyTools: readonly string[] | undefined;
  /** Exact names of tools, from `disabledTools` and its like in the entry. */
  readonly withoutTools: readonly string[];
}

/** A server of the file that is not used, because a variable it needs has no value. */
export interface DisabledServer {
  readonly name: string;
  readonly prefix: string | false;
  readonly tools: ServerConfig["tools"];
  readonly audit: ServerConfig["audit"];
  /** The missing part and the remedy, for those who run the gateway. */
  readonly reason: string;
}

/** A key that a client of the gateway may present. */
export interface KeyConfig {
  readonly name: string;
  /** Of the key, in lower-case hex. */
  readonly sha256: string;
  /** What rules know of its caller. */
  readonly groups?: readonly string[];
  readonly scopes?: readonly string[];
  /** Globs on public tool names; none means all. */
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  /** The profiles it may use, and nothing outside of them; undefined: all, and the gateway without a profile. */
  readonly profiles?: readonly string[] | undefined;
}

/** Where the admin API listens, and its key. */
export interface AdminConfig {
  /** 127.0.0.1. */
  readonly host?: string;
  /** 7781, or a free port when that is taken. */
  readonly port?: number;
  /** More values of `Host` to serve. */
  readonly allowedHosts: readonly string[];
  /** Of the key, in lower-case hex; undefined for a key that is made at each start. */
  readonly sha256?: string;
}

/** A rule about who may use what. */
export interface AccessRule {
  readonly kind: "allow" | "deny" | "scope";
  /** Globs on public names. */
  readonly names: readonly string[];
  /** Of a `scope` rule: the scopes that a token needs. */
  readonly scopes: readonly string[];
  /** A condition (CEL) over the caller: the rule applies only when it holds. */
  readonly when?: string;
  /** The opposite. */
  readonly unless?: string;
  /** The profiles at which it applies, and nowhere else; everywhere when left out. */
  readonly profiles?: readonly string[];
}

/** An issuer of access tokens that callers may present. */
export interface IssuerConfig extends IssuerOptions {
  readonly name: string;
  /** A client of the issuer, to ask it who visits a connect page; without it the gateway makes itself known. */
  readonly login?: { readonly clientId: string; readonly clientSecret?: string };
}

/** Where spans go, and of which requests. */
export interface TracesConfig {
  /** The whole address of a collector that takes OTLP/JSON over HTTP. */
  readonly endpoint?: string;
  readonly headers: { readonly [name: string]: string };
  /** Of a hundred requests whose callers do not trace, how many are traced; 100. */
  readonly percent?: number;
  /** `service.name` of the spans; `junctor`. */
  readonly service?: string;
}

/** How often, and for how long, tools may be called. */
export interface CallLimits {
  readonly callsPerMinute?: number;
  /** Whether replicas ask the store for each call, instead of taking some calls ahead; no. */
  readonly strict?: boolean;
  readonly callTimeoutMs?: number;
}

/** Whether definitions must be the ones that a person approved. */
export interface LockConfig {
  /** `warn` tells of definitions that are not approved, `enforce` also holds them back. */
  readonly mode: "warn" | "enforce";
  /** The path of the lock file. */
  readonly file: string;
  /** Kinds of things that need no approval. */
  readonly skip: readonly ("prompts" | "resources" | "templates" | "instructions")[];
}

/** A config, checked, with its variables filled in. Made by `parseConfig` and its like. */
export interface GatewayConfig {
  /** In the order of the file. */
  readonly servers: readonly ServerConfig[];
  readonly disabled: readonly DisabledServer[];
  /** Between a prefix and a name; `__`. */
  readonly separator: Separator;
  readonly keys: readonly KeyConfig[];
  readonly profiles: readonly ProfileConfig[];
  /** Rules about who may use what; of several that fit, a `deny` wins. */
  readonly rules: readonly AccessRule[];
  /** Issuers whose access tokens callers may present beside keys. */
  readonly issuers: readonly IssuerConfig[];
  /** Globs on public tool names, for all callers; none means all. */
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  /** Paths of modules. */
  readonly middleware: readonly string[];
  readonly audit:
    | {
        readonly file: string;
        readonly maxBytes?: number;
        readonly keep?: number;
        /** How many days a file is protected from the records of other callers; 1 where there are keys, else 0. */
        readonly keepDays?: number;
        /** What becomes of a call whose record cannot be written; `closed`: it is refused. */
        readonly onFailure?: "closed" | "open";
        /** Whether arguments are recorded, redacted; no. */
        readonly arguments?: boolean;
      }
    | undefined;
  readonly limits: CallLimits & { readonly tools?: { readonly [glob: string]: CallLimits } };
  /** Names of presets, or regular expressions written `/…/flags`. */
  readonly redact: readonly string[];
  readonly http: {
    readonly host?: string;
    readonly port?: number;
    readonly allowedHosts: readonly string[];
    readonly allowedOrigins: readonly string[];
    readonly corsOrigins: readonly string[];
    /** The URL that clients know the endpoint by; its host and its origin are served. */
    readonly publicUrl?: string;
    /** Files for TLS, by their paths. With `clientCa`, callers may prove who they are by a certificate. */
    readonly tls?: TlsOptions;
    /** Served to everyone, if there is one; a draft of the protocol. */
    readonly serverCard?: ServerCard;
  };
  /** The admin API. `false` switches it off; undefined when the config does not say. Read at the start only. */
  readonly admin: AdminConfig | false | undefined;
  /** Undefined when the config says nothing of traces. Read at the start only. */
  readonly traces: TracesConfig | undefined;
  /** Where one line for each request goes; undefined for none. Read at the start only. */
  readonly accessLog:
    | { readonly file: string; readonly maxBytes?: number; readonly keep?: number }
    | "stderr"
    | undefined;
  readonly log: { readonly level: "trace" | "debug" | "info" | "warn" | "error" | "silent" };
  /** `idleMs`: how long the daemon of `junctor attach` runs without a client; 15 min. Read at its start only. */
  readonly daemon: { readonly idleMs: number };
  /** Most that one caller may hold; read at the start only. */
  readonly perCaller: CallerLimits;
  /** How long the first list waits for servers that are still starting; 20 s. */
  readonly firstListMs: number;
  /** How many servers start at the same time; undefined when the config does not say. */
  readonly maxStarts: number | undefined;
  /** The URL of the engine that replicas share; undefined when this is the only process. Read at the start only. */
  readonly store: string | undefined;
  /** Where other replicas reach this one. Read at the start only. */
  readonly trunk: TrunkConfig | undefined;
  /** How long a replica that is leaving waits for calls that are parked; 10 min. Read at the start only. */
  readonly drainMs: number;
  /** Undefined when definitions need no approval, the default. */
  readonly lock: LockConfig | undefined;
  /** Whether the lists of servers are remembered on disk; true. */
  readonly remembersLists: boolean;
  /**
   * Never to be shown, longest first: keys, and what `secret-value.ts` takes for a secret of the environment, of headers, of URLs, of
   * `env` and of `args`. Shorter than six characters is left out: hiding every `1` and `true` would hide the log.
   */
  readonly secrets: readonly string[];
  /** By server: secrets that read like ordinary words. They are not shown in what is about their server. */
  readonly ownSecrets: { readonly [server: string]: readonly string[] };
  /** Settings that are odd and not wrong. */
  readonly warnings: readonly ConfigIssue[];
}
