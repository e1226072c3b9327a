// The JSON that the admin API answers with, and that `junctor status`, `check` and `why` print with --json. Each interface has a
// shape beside it, from which OpenAPI and the tables of docs/reference/admin-api.md are made. The page imports the types.
import {
  anything,
  as,
  count,
  either,
  flag,
  list,
  maybe,
  named,
  number,
  numberOrNull,
  object,
  record,
  type Shape,
  text,
  word,
} from "./shape.ts";

export interface Status {
  readonly name: string;
  readonly version: string;
  readonly pid: number;
  readonly worker?: { readonly number: number; readonly count: number; readonly primary: number };
  readonly node: string;
  readonly startedAt: number;
  readonly uptimeMs: number;
  readonly state: "starting" | "ready" | "draining";
  readonly url?: string;
  readonly adminUrl?: string;
  readonly pageUrl?: string;
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
  readonly problems?: number;
}

export const status: Shape<Status> = named("Status", "The gateway as a whole.", {
  name: text("`junctor`."),
  version: text("The version of Junctor."),
  pid: count("The process number."),
  worker: maybe(
    object<NonNullable<Status["worker"]>>("Which worker answers; only with `--workers`.", {
      number: count("Its number, from 1."),
      count: count("How many workers there are."),
      primary: count("The process number of the primary."),
    }),
  ),
  node: text("The version of Node."),
  startedAt: number("When the process started."),
  uptimeMs: number("How long it runs."),
  state: word("`starting` until the first lists are there.", ["starting", "ready", "draining"]),
  url: maybe(text("The MCP endpoint. Missing with `--stdio`.")),
  adminUrl: maybe(text("The admin API on TCP, if it listens there.")),
  pageUrl: maybe(text("The page with the key of this run. Only on the socket.")),
  config: maybe(text("The config file. Missing for the demo.")),
  hasKeys: flag("Whether callers have to say who they are."),
  servers: record("How many servers have each `status`.", count("How many.")),
  calls: object("Calls of this process.", {
    underway: count("Not ended."),
    total: count("Ended since the start."),
    failed: count("Ended with an error since the start."),
  }),
  sessions: count("Legacy sessions in memory."),
  streams: count("Event streams of callers that stay open."),
  parked: count("Calls that wait for a caller that is away."),
  memoryBytes: count("Resident memory."),
  eventLoopDelayMs: number("How late timers are on average."),
  logLevel: text("The level of the log."),
  problems: maybe(count("How many problems `GET /api/problems` lists. Not in events.")),
});

const listParts = ["tools", "resources", "templates", "prompts"] as const;

/** A definition that clients would refuse. */
export interface ListedFault {
  readonly part: (typeof listParts)[number];
  readonly name: string;
  readonly isLeftOut: boolean;
  readonly reason: string;
}

const listedFault: Shape<ListedFault> = named("Fault", "A definition that clients would refuse.", {
  part: word("The list it is in.", listParts),
  name: text("The server's own name for it."),
  isLeftOut: flag(
    "Whether it is missing from the list; otherwise it was mended without changing its meaning.",
  ),
  reason: text("The fault, and what was done about it."),
});

interface UnapprovedDefinition {
  readonly part: (typeof listParts)[number] | "instructions";
  readonly name: string;
  readonly why: "new" | "changed";
  readonly isHeldBack: boolean;
}

const unapproved: Shape<UnapprovedDefinition> = named(
  "Unapproved",
  "A definition that differs from the lock.",
  {
    part: word("The list it is in.", [...listParts, "instructions"]),
    name: text("The server's own name for it."),
    why: word("How it differs.", ["new", "changed"]),
    isHeldBack: flag("Whether callers cannot see or use it."),
  },
);

interface ConnectionReport {
  readonly reason: string;
  readonly status: Exclude<ServerReport["status"], "disabled">;
  readonly inUse: number;
}

const connection: Shape<ConnectionReport> = named(
  "Connection",
  "One process or HTTP connection of a server.",
  {
    reason: text("Why there is one."),
    status: word("As of the server.", ["idle", "starting", "up", "down", "stopped"]),
    inUse: count("Calls and watches that use it now."),
  },
);

/** What is wrong with a server, in the same words everywhere. */
export interface CauseReport {
  readonly kind: "down" | "slow" | "warning";
  readonly text: string;
  readonly meaning: string;
  readonly advice?: string;
  readonly sinceAt?: number;
  readonly failed?: number;
}

const cause: Shape<CauseReport> = named("Cause", "What is wrong with a server.", {
  kind: word("How bad it is.", ["down", "slow", "warning"]),
  text: text("In one line: the last words of the server, where it had any."),
  meaning: text("What that means; may be empty."),
  advice: maybe(text("What to do about it.")),
  sinceAt: maybe(number("Since when.")),
  failed: maybe(count("Calls to it that failed since then.")),
});

interface ChangeReport {
  readonly at: number;
  readonly status: "idle" | "starting" | "up" | "down" | "stopped";
  readonly reason?: string;
}

const change: Shape<ChangeReport> = named("Change", "One change of a server.", {
  at: number("When."),
  status: word("What it was from then on.", ["idle", "starting", "up", "down", "stopped"]),
  reason: maybe(text("Why it went down.")),
});

/** How one server is. */
export interface ServerReport {
  readonly name: string;
  readonly status: "idle" | "starting" | "up" | "down" | "stopped" | "disabled";
  readonly kind?: "command" | "http" | "local";
  readonly start?: "eager" | "lazy";
  readonly sharing?: "shared" | "perSession" | "exclusive";
  readonly era?: "modern" | "legacy";
  readonly revision?: string;
  readonly says?: string;
  readonly tools: number;
  readonly resources: number;
  readonly prompts: number;
  readonly inFlight?: number;
  readonly restarts?: number;
  readonly canRestart?: boolean;
  readonly connectMs?: number;
  readonly latencyMs?: number;
  readonly sinceAt?: number;
  readonly nextTryAt?: number;
  readonly trouble?: string;
  readonly reason?: string;
  readonly code?: string;
  readonly advice?: string;
  readonly said?: string;
  readonly stray?: string;
  readonly connections?: readonly ConnectionReport[];
  readonly leftOut?: readonly ListedFault[];
  readonly mended?: readonly ListedFault[];
  readonly unapproved?: readonly UnapprovedDefinition[];
  readonly cause?: CauseReport;
  readonly day?: string;
  readonly changes?: readonly ChangeReport[];
  readonly tokens?: number;
  readonly address?: string;
  readonly isRecorded?: boolean;
  readonly recent?: {
    readonly rate: readonly number[];
    readonly p50Ms: readonly (number | null)[];
    readonly stepMs: number;
  };
}

export const server: Shape<ServerReport> = named("Server", "One server of the config.", {
  name: text("Its name in the config."),
  status: word("`idle` is not started yet; `stopped` was ended by a person; `disabled` by the config.", [
    "idle",
    "starting",
    "up",
    "down",
    "stopped",
    "disabled",
  ]),
  kind: maybe(
    word("How it is reached; `local` is part of this process (the demo).", ["command", "http", "local"]),
  ),
  start: maybe(word("When it starts.", ["eager", "lazy"])),
  sharing: maybe(word("Who shares a process of it.", ["shared", "perSession", "exclusive"])),
  era: maybe(word("The era it speaks, while it is up.", ["modern", "legacy"])),
  revision: maybe(text("The revision of the protocol it speaks.")),
  says: maybe(text("The name and version that it reports.")),
  tools: count("Tools that callers are listed."),
  resources: count("The same for resources."),
  prompts: count("The same for prompts."),
  inFlight: maybe(count("Requests to it that are underway.")),
  restarts: maybe(count("How often it was started again.")),
  canRestart: maybe(flag("Whether it can be stopped and restarted.")),
  connectMs: maybe(number("How long it took to connect.")),
  latencyMs: maybe(number("How long it takes to answer a ping. Only in `junctor check`.")),
  sinceAt: maybe(number("Since when it is in this state.")),
  nextTryAt: maybe(number("When it is tried again, while it is down.")),
  trouble: maybe(text("The problem, in words.")),
  reason: maybe(text("Why it failed last, without what follows.")),
  code: maybe(text("The same for programs: a code of [errors.md](errors.md), `starting` or `not_listed`.")),
  advice: maybe(text("What to do about it.")),
  said: maybe(text("The end of what it wrote to its standard error stream.")),
  stray: maybe(text("The first line on its standard output that is not a message of the protocol.")),
  connections: maybe(list("Its connections, when there are several.", connection)),
  leftOut: maybe(list("Definitions that are left out.", listedFault)),
  mended: maybe(list("Definitions that were mended.", listedFault)),
  unapproved: maybe(list("Definitions that are not the ones in the lock.", unapproved)),
  cause: maybe(as("What is wrong with it. Not in `junctor check`.", cause)),
  day: maybe(
    text(
      "The last 24 hours, a letter for each quarter of an hour, the oldest first: `u` up, `s` starting, `d` down, `i` idle or stopped, `-` not known. Not in events, nor in `junctor check`.",
    ),
  ),
  changes: maybe(list("Its last changes, at most 50. Only in `GET /api/servers/:name`.", change)),
  tokens: maybe(
    count(
      "About how many tokens the definitions of its tools are for a model. Not in events, nor in `junctor check`.",
    ),
  ),
  address: maybe(text("Its command without arguments, or the host and path of its URL.")),
  isRecorded: maybe(flag("Whether arguments and results of its calls are kept.")),
  recent: maybe(
    object<NonNullable<ServerReport["recent"]>>(
      "The last 60 points of its chart. Not in events, nor in `junctor check`.",
      {
        rate: list("Calls a second.", number("")),
        p50Ms: list("Median; `null` in steps without a call.", numberOrNull("")),
        stepMs: number("How long a step is."),
      },
    ),
  ),
});

export interface Servers {
  readonly servers: readonly ServerReport[];
}

export const servers: Shape<Servers> = object("Every server, also those that are disabled.", {
  servers: list("In the order of the config.", server),
});

/** A JSON Schema that a server wrote. */
interface ForeignSchema {
  readonly [keyword: string]: unknown;
}

const foreignSchema = (doc: string): Shape<ForeignSchema> => record(doc, anything(""));

export interface ListedTool {
  readonly name: string;
  readonly server: string;
  readonly ownName: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: ForeignSchema;
  readonly outputSchema?: ForeignSchema;
  readonly annotations?: {
    readonly title?: string;
    readonly readOnlyHint?: boolean;
    readonly destructiveHint?: boolean;
    readonly idempotentHint?: boolean;
    readonly openWorldHint?: boolean;
  };
}

const tool: Shape<ListedTool> = named("Tool", "A tool. Members that its server added are there too.", {
  name: text("The name that callers use."),
  server: text("Its server."),
  ownName: text("Its server's name for it."),
  title: maybe(text("For people.")),
  description: maybe(text("For models.")),
  inputSchema: foreignSchema("JSON Schema of its arguments."),
  outputSchema: maybe(foreignSchema("JSON Schema of its structured result.")),
  annotations: maybe(
    object<NonNullable<ListedTool["annotations"]>>("Hints of its server.", {
      title: maybe(text("For people.")),
      readOnlyHint: maybe(flag("Whether it changes nothing.")),
      destructiveHint: maybe(flag("Whether it may destroy something.")),
      idempotentHint: maybe(flag("Whether calling it twice does no more than calling it once.")),
      openWorldHint: maybe(flag("Whether it reaches beyond its server.")),
    }),
  ),
});

export interface ListedPrompt {
  readonly name: string;
  readonly server: string;
  readonly ownName: string;
  readonly description?: string;
  readonly arguments?: readonly {
    readonly name: string;
    readonly description?: string;
    readonly required?: boolean;
  }[];
}

const prompt: Shape<ListedPrompt> = named(
  "Prompt",
  "A prompt. Members that its server added are there too.",
  {
    name: text("The name that callers use."),
    server: text("Its server."),
    ownName: text("Its server's name for it."),
    description: maybe(text("For people.")),
    arguments: maybe(
      list(
        "What it takes.",
        object<NonNullable<ListedPrompt["arguments"]>[number]>("One argument.", {
          name: text("Its name."),
          description: maybe(text("For people.")),
          required: maybe(flag("Whether it must be given.")),
        }),
      ),
    ),
  },
);

interface ListedResource {
  readonly uri: string;
  readonly server?: string;
  readonly name?: string;
  readonly mimeType?: string;
}

const resource: Shape<ListedResource> = named(
  "Resource",
  "A resource. Members that its server added are there too.",
  {
    uri: text("The URI that callers use."),
    server: maybe(text("Its server.")),
    name: maybe(text("For people.")),
    mimeType: maybe(text("The type of its content.")),
  },
);

interface ListedTemplate {
  readonly uriTemplate: string;
  readonly server?: string;
  readonly name?: string;
}

const template: Shape<ListedTemplate> = named("Template", "A template of resources.", {
  uriTemplate: text("The template of RFC 6570 that callers use."),
  server: maybe(text("Its server.")),
  name: maybe(text("For people.")),
});

/** A name that several servers claim. */
export interface NameCollision {
  readonly name: string;
  readonly owner: string;
  readonly others: readonly string[];
  readonly isReserved: boolean;
  readonly advice: string;
}

const collision: Shape<NameCollision> = named("Collision", "A name that several servers claim.", {
  name: text("The name, or the URI."),
  owner: text("The server that has it."),
  others: list("The servers that claim it too and cannot be reached by it.", text("")),
  isReserved: flag(
    "Whether it begins with the owner's prefix, so that it is kept for the owner even if the owner does not offer it.",
  ),
  advice: text("The collision in words, with what to do."),
});

export interface CatalogReport {
  readonly as?: string;
  readonly tools: readonly ListedTool[];
  readonly prompts: readonly ListedPrompt[];
  readonly resources: readonly ListedResource[];
  readonly templates: readonly ListedTemplate[];
  readonly collisions: readonly NameCollision[];
}

export const catalog: Shape<CatalogReport> = named(
  "Catalog",
  "What callers may see and use, under the names they use.",
  {
    as: maybe(text("The caller that was asked for.")),
    tools: list("Tools.", tool),
    prompts: list("Prompts.", prompt),
    resources: list("Resources.", resource),
    templates: list("Templates of resources.", template),
    collisions: list("Names that several servers claim.", collision),
  },
);

interface CallerReport {
  readonly name: string;
  readonly calls: number;
  readonly sessions: number;
  readonly parked: number;
  readonly tools: number;
  readonly isRevoked: boolean;
}

const caller: Shape<CallerReport> = named("Caller", "Someone who may call.", {
  name: text("The name of its key, or `ISSUER:SUBJECT`."),
  calls: count("Its calls underway."),
  sessions: count("Its legacy sessions."),
  parked: count("Its parked calls."),
  tools: count("Tools it may see."),
  isRevoked: flag("Whether it is refused."),
});

export interface Callers {
  readonly callers: readonly CallerReport[];
  readonly unnamed: boolean;
}

export const callers: Shape<Callers> = object("The callers that are known.", {
  callers: list(
    "Those that the config has keys for, and the last 1,000 that came in by a token or certificate that has not expired.",
    caller,
  ),
  unnamed: flag(
    "Whether callers without a name come in: the config has no keys and no issuers. `as` is left out for them.",
  ),
});

export interface CallReport {
  readonly id: string;
  readonly method: string;
  readonly tool?: string;
  readonly name?: string;
  readonly server?: string;
  readonly caller?: string;
  readonly client?: string;
  readonly era: "modern" | "legacy";
  readonly upstreamEra?: "modern" | "legacy";
  readonly state: "queued" | "sent" | "asked" | "parked" | "answered" | "ended";
  readonly at: number;
  readonly ms: number;
  readonly steps: readonly { readonly state: CallReport["state"]; readonly atMs: number }[];
  readonly outcome?: "ok" | "tool_error" | "input_required" | "task" | "cancelled" | "refused" | "failed";
  readonly code?: string;
  readonly delivery?: string;
  readonly reason?: string;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly traceId?: string;
  readonly isFromPage: boolean;
  readonly arguments?: unknown;
  readonly result?: unknown;
  readonly cut?: boolean;
}

const callStates = ["queued", "sent", "asked", "parked", "answered", "ended"] as const;

export const call: Shape<CallReport> = named("Call", "One call; over several rounds it is still one.", {
  id: text("Its id here, in logs and in `GET /api/parked`."),
  method: text("The method of the protocol."),
  tool: maybe(text("The tool, for `tools/call`.")),
  name: maybe(text("The name of a prompt or the URI of a resource, for other methods.")),
  server: maybe(text("The server that has it.")),
  caller: maybe(text("Who called.")),
  client: maybe(text("What the client calls itself.")),
  era: word("The era of the caller.", ["modern", "legacy"]),
  upstreamEra: maybe(word("The era of the server.", ["modern", "legacy"])),
  state: word(
    "`queued`: it came in; `sent` to its server (not for a server of this process); `asked`: the server asked its caller; " +
      "`parked`: the caller left with the question; `answered`: the answers are with the server; `ended`.",
    callStates,
  ),
  at: number("When it came in."),
  ms: number("How long it took, so far if it has not ended."),
  steps: list(
    "The states it went through, at most 32.",
    object("One step.", {
      state: word("The state.", callStates),
      atMs: number("How long after the beginning."),
    }),
  ),
  outcome: maybe(
    word("How it ended.", ["ok", "tool_error", "input_required", "task", "cancelled", "refused", "failed"]),
  ),
  code: maybe(text("The code of its error; see [errors.md](errors.md).")),
  delivery: maybe(text("What became of a call that failed: `not_sent`, `outcome_unknown` or `answered`.")),
  reason: maybe(text("Why it failed, in words; of a tool that says so itself, only where results are kept.")),
  bytesIn: count("Bytes of the params of its last round."),
  bytesOut: count("Bytes of the result of its last round."),
  traceId: maybe(text("The trace it belongs to.")),
  isFromPage: flag("Whether it was made by `POST /api/try`."),
  arguments: maybe(anything("What was recorded of its arguments. Only in `GET /api/calls/:id`.")),
  result: maybe(anything("What was recorded of its result. Only in `GET /api/calls/:id`.")),
  cut: maybe(
    flag("Whether arguments or result were longer than what is kept. Only in `GET /api/calls/:id`."),
  ),
});

export interface Calls {
  readonly underway: readonly CallReport[];
  readonly recent: readonly CallReport[];
}

export const calls: Shape<Calls> = object("Calls that were not forgotten.", {
  underway: list("At most 1,000, the oldest first.", call),
  recent: list("Calls whose caller is away, then the last 64 that ended; the newest first.", call),
});

export interface History {
  readonly calls: readonly CallReport[];
  readonly next?: number;
  readonly all: number;
  readonly failed: number;
  readonly kept: number;
  readonly keptSince?: number;
  readonly keptBytes: number;
  readonly fromAt: number;
  readonly barMs: number;
  readonly callBars: readonly number[];
  readonly failedBars: readonly number[];
}

export const history: Shape<History> = object("Calls that ended and fit the query, with counts over time.", {
  calls: list("One page, the newest first.", call),
  next: maybe(count("`before` of the next page; missing on the last one.")),
  all: count("How many calls fit, failed or not."),
  failed: count("How many of them failed."),
  kept: count("How many calls are kept in all."),
  keptSince: maybe(number("When the oldest of them came in.")),
  keptBytes: count("Bytes of memory that the history takes."),
  fromAt: number("When the first bar begins."),
  barMs: number("How long a bar is."),
  callBars: list("Calls that fit, over time.", count("")),
  failedBars: list("Those of them that failed.", count("")),
});

/** What one caller, tool or server was used for. */
export interface UsageReport {
  readonly name: string;
  readonly server?: string;
  readonly calls: number;
  readonly failed: number;
  readonly meanMs: number;
  readonly mostMs: number;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  readonly tokensIn: number;
  readonly tokensOut: number;
  readonly lastAt?: number;
}

export const usageRow: Shape<UsageReport> = named("Usage", "Sums of calls.", {
  name: text("The caller, tool or server. `_other` stands for those beyond 1,000 in an hour."),
  server: maybe(text("The server of a tool.")),
  calls: count("How many calls."),
  failed: count("How many of them failed."),
  meanMs: number("How long they took on average."),
  mostMs: number("How long the longest took."),
  p50Ms: maybe(number("Median; only where all of the calls are still kept.")),
  p99Ms: maybe(number("The same for 99 of 100 calls.")),
  tokensIn: count("About how many tokens the arguments were."),
  tokensOut: count("About how many tokens the results were."),
  lastAt: maybe(number("When the last of them came in; only where the calls are still kept.")),
});

export interface Usage {
  readonly by: "caller" | "tool" | "server";
  readonly sinceAt: number;
  readonly source: "calls" | "hours";
  readonly rows: readonly UsageReport[];
}

export const usage: Shape<Usage> = object("Who used how much.", {
  by: word("What the sums are by.", ["caller", "tool", "server"]),
  sinceAt: number("From when on calls count."),
  source: word("Whether they are sums of calls in memory or of the counters by hour on disk.", [
    "calls",
    "hours",
  ]),
  rows: list("At most 1,000, those with most calls first.", usageRow),
});

interface SettingReport {
  readonly path: string;
  readonly value: unknown;
  readonly from: "file" | "defaults" | "default";
  readonly line?: number;
  readonly variables?: readonly string[];
}

export interface Settings {
  readonly file?: string;
  readonly settings: readonly SettingReport[];
  readonly fault?: string;
}

export const settings: Shape<Settings> = object("The config as it is understood.", {
  file: maybe(text("The config file. Missing for the demo.")),
  settings: list(
    "Every setting, in the order of the reference.",
    object<SettingReport>("One setting.", {
      path: text("Where it stands."),
      value: anything("Its value, with secrets hidden."),
      from: word("Whether the file says it, `junctor.defaults`, or nothing.", [
        "file",
        "defaults",
        "default",
      ]),
      line: maybe(count("Where it is written.")),
      variables: maybe(list("Variables whose values are in it.", text(""))),
    }),
  ),
  fault: maybe(text("Why the file cannot be read; there are no settings then.")),
});

interface SessionReport {
  readonly id: string;
  readonly caller?: string;
  readonly client: string;
  readonly revision: string;
  readonly transport: string;
  readonly ageMs: number;
  readonly idleMs: number;
  readonly calls: number;
  readonly streams: number;
  readonly subscriptions: number;
  readonly questions: number;
}

const session: Shape<SessionReport> = named("Session", "A legacy session.", {
  id: text("Made up for this list; it opens nothing."),
  caller: maybe(text("Who opened it.")),
  client: text("What the client calls itself."),
  revision: text("The revision of the protocol it speaks."),
  transport: text("`http`."),
  ageMs: number("Since it was opened."),
  idleMs: number("Since it was used."),
  calls: count("Its calls underway."),
  streams: count("Its open event streams."),
  subscriptions: count("Its subscriptions to resources."),
  questions: count("Questions that it has not answered."),
});

export interface Sessions {
  readonly sessions: readonly SessionReport[];
  readonly more: number;
}

export const sessions: Shape<Sessions> = object("Legacy sessions.", {
  sessions: list("At most 1,000, the oldest first.", session),
  more: count("How many others there are."),
});

interface ParkedReport {
  readonly call?: string;
  readonly server: string;
  readonly tool?: string;
  readonly caller?: string;
  readonly ageMs: number;
  readonly leftMs?: number;
  readonly questions: readonly { readonly method: string }[];
  readonly waitsFor: "caller" | "server";
}

const parkedCall: Shape<ParkedReport> = named("Parked", "A call that a legacy server waits with.", {
  call: maybe(text("The id of the call.")),
  server: text("The server that asked."),
  tool: maybe(text("The tool that was called.")),
  caller: maybe(text("Who called.")),
  ageMs: number("Since its caller left."),
  leftMs: maybe(
    number(
      "Time until the call is given up, less while another call [waits for it](gateway.md#unanswered-questions). Missing while the caller is here.",
    ),
  ),
  questions: list(
    "The open questions.",
    object("One question.", { method: text("Such as `elicitation/create`.") }),
  ),
  waitsFor: word("`server` while the server works on the answers.", ["caller", "server"]),
});

export interface ParkedCalls {
  readonly parked: readonly ParkedReport[];
  readonly more: number;
}

export const parked: Shape<ParkedCalls> = object("Calls that wait for a caller that is away.", {
  parked: list("At most 1,000, the oldest first.", parkedCall),
  more: count("How many others there are."),
});

/** The points of one chart, the oldest first. */
export interface Series {
  readonly server?: string;
  readonly tool?: string;
  readonly rate: readonly number[];
  readonly errors: readonly number[];
  readonly p50Ms: readonly (number | null)[];
  readonly p99Ms: readonly (number | null)[];
}

const series: Shape<Series> = named("Series", "One chart; the oldest point first.", {
  server: maybe(text("Missing for the total. `_other` stands for those beyond 1,000.")),
  tool: maybe(text("The public name of the tool, with `by=tool`.")),
  rate: list("Calls a second, by the time they end.", number("")),
  errors: list("The same for calls that failed.", number("")),
  p50Ms: list("Median, from the buckets of a histogram; `null` without a call.", numberOrNull("")),
  p99Ms: list("The same for 99 of 100 calls.", numberOrNull("")),
});

export interface ChartsReport {
  readonly stepMs: number;
  readonly endAt: number;
  readonly points: number;
  readonly series: readonly Series[];
}

export const charts: Shape<ChartsReport> = object(
  "One hour or one day of `tools/call`, `resources/read` and `prompts/get`.",
  {
    stepMs: number("How long a step is."),
    endAt: number("When the last step ended."),
    points: count("How many steps there are."),
    series: list("The charts, the busiest first.", series),
  },
);

interface Problem {
  readonly severity: "error" | "warning";
  readonly where: string;
  readonly message: string;
  readonly server?: string;
}

const problem: Shape<Problem> = named("Problem", "Something a person should look at.", {
  severity: word("How bad it is.", ["error", "warning"]),
  where: text("A path in the config, or the name of a server."),
  message: text("What is wrong, and what to do."),
  server: maybe(text("The server it is about.")),
});

export interface Problems {
  readonly problems: readonly Problem[];
  readonly waiting?: { readonly edits: readonly string[]; readonly version: string };
}

export const problems: Shape<Problems> = object("What a person should look at.", {
  problems: list(
    "Warnings of the config, rules that match nothing, servers that are disabled or down, collisions, definitions that are left out or not approved.",
    problem,
  ),
  waiting: maybe(
    object<NonNullable<Problems["waiting"]>>("The part of an edited config that waits for a person.", {
      edits: list("What it would change, in words.", text("")),
      version: text("For `POST /api/reload`."),
    }),
  ),
});

/** A line of the log. */
export interface AdminLogLine {
  readonly seq: number;
  readonly at: number;
  readonly level: "debug" | "info" | "warn" | "error";
  readonly text: string;
  readonly facts: { readonly [name: string]: unknown };
}

const logLine: Shape<AdminLogLine> = named("LogLine", "A line of the log, with secrets hidden.", {
  seq: count("Its number."),
  at: number("When it was written."),
  level: word("How important it is.", ["debug", "info", "warn", "error"]),
  text: text("What happened."),
  facts: record("With what.", anything("")),
});

export interface LogReport {
  readonly lines: readonly AdminLogLine[];
  readonly next: number;
}

export const log: Shape<LogReport> = object("Lines of the log.", {
  lines: list("The oldest first.", logLine),
  next: count("`after` of the next request."),
});

/** Another level of the log. */
export interface LogLevel {
  readonly level: "trace" | "debug" | "info" | "warn" | "error" | "silent";
}

export const logLevel: Shape<LogLevel> = object("A level of the log.", {
  level: word("The least important lines that are written.", [
    "trace",
    "debug",
    "info",
    "warn",
    "error",
    "silent",
  ]),
});

export interface Revocation {
  readonly name: string;
  readonly isRevoked: boolean;
}

export const revocation: Shape<Revocation> = object("Whether a caller is refused.", {
  name: text("The caller."),
  isRevoked: flag("Whether it is refused from now on."),
});

/** A call that waits for the operator. */
export interface ApprovalReport {
  readonly id: string;
  readonly name: string;
  readonly method: string;
  readonly server?: string | undefined;
  readonly caller?: string | undefined;
  readonly arguments: string;
  readonly argumentsDigest: string;
  readonly definition: string;
  readonly rule: string;
  readonly calls: number;
  readonly askedAt: number;
  readonly expiresAt: number;
}

export const approval: Shape<ApprovalReport> = object("A call that waits for the operator.", {
  id: text("By which it is answered."),
  name: text("What is called. It comes from a server: show it as a text."),
  method: text("The method."),
  server: maybe(text("The server.")),
  caller: maybe(text("Who calls; left out where callers have no names.")),
  arguments: text(
    "The arguments as they will be sent, on one line, secrets hidden, cut where they are long. They come from a model: show them as a text.",
  ),
  argumentsDigest: text("The digest of the bytes of the arguments."),
  definition: text("The digest of the definition."),
  rule: text("The rule that asks."),
  calls: count("How many equal calls wait. A yes is for so many."),
  askedAt: count("When it was asked, in milliseconds since the epoch."),
  expiresAt: count("When it is refused."),
});

export interface ApprovalReports {
  readonly approvals: readonly ApprovalReport[];
}

export const approvals: Shape<ApprovalReports> = object(
  "The calls that wait for the operator, oldest first.",
  {
    approvals: list("The calls.", approval),
  },
);

export interface ApprovalAnswer {
  readonly answer: "approve" | "deny";
  readonly calls?: number | undefined;
}

export const approvalAnswer: Shape<ApprovalAnswer> = object("The answer to a question.", {
  answer: word("`approve`: the call is made. `deny`: it is refused.", ["approve", "deny"]),
  calls: maybe(count("For how many equal calls: as many as were shown. All that wait when left out.")),
});

/** The newest point of a chart. */
interface SeriesPoint {
  readonly server?: string;
  readonly tool?: string;
  readonly rate: number;
  readonly errors: number;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

/** The newest point of each chart. */
export interface ChartPoints {
  readonly endAt: number;
  readonly series: readonly SeriesPoint[];
}

/** The events of the stream, by kind. */
export interface AdminEvents {
  readonly hello: { readonly version: string; readonly at: number };
  readonly calls: { readonly calls: readonly CallReport[]; readonly skipped: number };
  readonly server: ServerReport | RemovedServer;
  readonly catalog: object;
  readonly point: ChartPoints;
  readonly status: Status;
  readonly parked: ParkedCalls;
  readonly problems: object;
  readonly log: { readonly lines: readonly AdminLogLine[]; readonly skipped: number };
  readonly dropped: { readonly events: number };
}

interface RemovedServer {
  readonly name: string;
  readonly status: "removed";
}

const removedServer: Shape<RemovedServer> = object("A server that is gone.", {
  name: text("Its name."),
  status: word("Always this.", ["removed"]),
});

export const adminEvents: Shape<AdminEvents> = object("By the kind of event.", {
  hello: object(
    "The first event. What happened before it is in the lists, what happens after it in the stream.",
    {
      version: text("The version of Junctor."),
      at: number("When the stream began."),
    },
  ),
  calls: object(
    "Calls that began, changed state or ended, each as it is now; gathered for 250 ms. If an event showed a call as underway, a later one shows its end.",
    {
      calls: list("At most 50.", call),
      skipped: count("Calls that ended and were left out."),
    },
  ),
  server: either(
    'A server whose status, lists or trouble changed; `{ "name": …, "status": "removed" }` when it is gone.',
    server,
    removedServer,
  ),
  catalog: object("Tools, prompts or resources changed; read them again.", {}),
  point: object(
    "The newest point of each chart, every 10 s: the total, every server, and the 100 busiest tools.",
    {
      endAt: number("When the step ended."),
      series: list(
        "One for each chart.",
        named("Point", "The newest point of a chart; its members mean what they do in [Series](#series).", {
          server: maybe(text("Missing for the total.")),
          tool: maybe(text("Of a chart of a tool.")),
          rate: number("Calls a second."),
          errors: number("The same for calls that failed."),
          p50Ms: numberOrNull("Median."),
          p99Ms: numberOrNull("The same for 99 of 100 calls."),
        }),
      ),
    },
  ),
  status: as("The gateway as a whole, every 2 s.", status),
  parked: as("When it changed, at most once in 250 ms.", parked),
  problems: object("Read them again.", {}),
  log: object("New lines of the log; gathered for 250 ms.", {
    lines: list("At most 100.", logLine),
    skipped: count("Lines that were left out."),
  }),
  dropped: object("The reader was too slow; read the lists again.", {
    events: count("How many events were left out."),
  }),
});

/** The events of `POST /api/try`, by kind. */
export interface TryEvents {
  readonly began: { readonly try: string; readonly call?: string };
  readonly progress: {
    readonly progress: number;
    readonly total?: number;
    readonly message?: string;
    readonly progressToken?: unknown;
  };
  readonly log: { readonly level: string; readonly data: unknown; readonly logger?: string };
  readonly question: { readonly questions: { readonly [key: string]: AskedQuestion } };
  readonly result: { readonly isError: boolean; readonly result: unknown; readonly ms: number };
  readonly error: {
    readonly error: { readonly code: number; readonly message: string; readonly data?: unknown };
    readonly ms: number;
  };
}

/** A question of a tool, as the protocol has it. */
export interface AskedQuestion {
  readonly method: string;
  readonly params?: {
    readonly mode?: string;
    readonly message?: string;
    readonly url?: string;
    readonly requestedSchema?: ForeignSchema;
  };
}

const question: Shape<AskedQuestion> = named("Question", "A question of a tool, as the protocol has it.", {
  method: text("`elicitation/create`."),
  params: maybe(
    object("Its params.", {
      mode: maybe(text("`url` for a page that the person opens; otherwise a form.")),
      message: maybe(text("What is asked.")),
      url: maybe(text("The page.")),
      requestedSchema: maybe(foreignSchema("JSON Schema of the form.")),
    }),
  ),
});

export const tryEvents: Shape<TryEvents> = object("By the kind of event.", {
  began: object("The first event.", {
    try: text("The id for `POST /api/try/:id/answers` and `DELETE /api/try/:id`."),
    call: maybe(text("Its id in `GET /api/calls`.")),
  }),
  progress: object<TryEvents["progress"]>("Progress, as the tool tells it.", {
    progress: number("How far it is."),
    total: maybe(number("How far it goes.")),
    message: maybe(text("In words.")),
    progressToken: maybe(anything("Of the protocol; of no use here.")),
  }),
  log: object("A log message of the tool.", {
    level: text("How important it is."),
    data: anything("What it says."),
    logger: maybe(text("Where it comes from.")),
  }),
  question: object("The tool asks. Every question must be answered within 10 minutes.", {
    questions: record("The questions, by the keys of their answers.", question),
  }),
  result: object("The last event of a call that has a result.", {
    isError: flag("Whether the tool failed."),
    result: anything("The whole result, as the server gave it."),
    ms: number("How long the call took."),
  }),
  error: object("The last event of a call that failed.", {
    error: object("The error of JSON-RPC.", {
      code: number("Its number."),
      message: text("What went wrong."),
      data: maybe(anything("More about it.")),
    }),
    ms: number("How long the call took."),
  }),
});

/** What `junctor check --json` prints. */
export interface CheckReport {
  readonly file: string;
  readonly servers: readonly ServerReport[];
  readonly issuers?: readonly { readonly name: string; readonly issuer: string; readonly reason?: string }[];
  readonly collisions: readonly NameCollision[];
  readonly warnings: readonly { readonly path: string; readonly message: string }[];
}

export const checkReport: Shape<CheckReport> = named("Check", "What `junctor check --json` prints.", {
  file: text("The config."),
  servers: list("In the order of the config.", server),
  issuers: maybe(
    list(
      "Issuers of tokens.",
      object<NonNullable<CheckReport["issuers"]>[number]>("One issuer.", {
        name: text("Its name in the config."),
        issuer: text("Its identifier."),
        reason: maybe(text("Why its tokens will be refused.")),
      }),
    ),
  ),
  collisions: list("Names that several servers claim.", collision),
  warnings: list(
    "Odd settings, and rules that match nothing.",
    object("One warning.", { path: text("The setting."), message: text("What is odd, and what to do.") }),
  ),
});

/** What `junctor why --json` prints. */
export interface AccessReport {
  readonly caller: string;
  readonly tool: string;
  readonly decision: "allow" | "deny" | "step_up";
  readonly setting?: string;
  readonly reason: string;
  readonly scopes: readonly string[];
}

export const accessReport: Shape<AccessReport> = named("Access", "What `junctor why --json` prints.", {
  caller: text("The caller."),
  tool: text("The public name of the tool."),
  decision: word("Whether the caller may use it; `step_up` with a token that has more scopes.", [
    "allow",
    "deny",
    "step_up",
  ]),
  setting: maybe(text("The setting that decides.")),
  reason: text("Why, in words."),
  scopes: list("For `step_up`: all scopes that are needed.", text("")),
});
