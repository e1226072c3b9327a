import { Durations } from "./durations.ts";

/** What a duration is counted under. An empty text stands for none. */
interface CallLabels {
  readonly method: string;
  readonly server: string;
  readonly tool: string;
  readonly era: string;
  /** Empty for a success. */
  readonly errorType: string;
}

/** One series: its labels and its durations. */
export interface CallSeries extends CallLabels {
  readonly durations: Durations;
}

interface CallMetricsOptions {
  /** Tools beyond this number are counted as `_other`; 1,000. */
  readonly maxTools?: number;
  /** The same for all series together, counting by method and era; 5,000. */
  readonly maxSeries?: number;
}

/** The methods that are counted under their own names. Any client can make up others. */
const methods = new Set([
  "initialize",
  "ping",
  "server/discover",
  "subscriptions/listen",
  "logging/setLevel",
  "completion/complete",
  "tools/list",
  "tools/call",
  "prompts/list",
  "prompts/get",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "resources/subscribe",
  "resources/unsubscribe",
  "tasks/get",
  "tasks/update",
  "tasks/cancel",
  "tasks/result",
  "tasks/list",
]);

/** The name of everything that has no series of its own. */
export const other = "_other";

/** Error types come from a catalogue, but thrown values may have a `code` of their own. */
const maxErrorTypes = 100;

type Nested<T> = Map<string, T>;

/**
 * Durations of calls by method, server, tool, era and error type. The number of series is limited: a client or a server that
 * makes up names costs no memory.
 */
export class CallMetrics {
  readonly #maxTools: number;
  readonly #maxSeries: number;
  readonly #series: CallSeries[] = [];
  /** By method, server, tool, era and error type: strings are looked up, never joined. */
  readonly #tree: Nested<Nested<Nested<Nested<Nested<Durations>>>>> = new Map();
  readonly #errorTypes = new Set<string>();
  #tools = 0;

  constructor({ maxTools = 1000, maxSeries = 5000 }: CallMetricsOptions = {}) {
    this.#maxTools = maxTools;
    this.#maxSeries = maxSeries;
  }

  get series(): readonly CallSeries[] {
    return this.#series;
  }

  record(labels: CallLabels, seconds: number): void {
    const { method, server, tool, era, errorType } = labels;
    const found = this.#tree.get(method)?.get(server)?.get(tool)?.get(era)?.get(errorType);
    (found ?? this.#add(labels)).add(seconds);
  }

  #add(labels: CallLabels): Durations {
    const method = methods.has(labels.method) ? labels.method : other;
    let { server, tool } = labels;
    let errorType = this.#toErrorType(labels.errorType);
    const isKnown = this.#tree.get(method)?.get(server)?.has(tool) === true;
    if (tool !== "" && !isKnown && ++this.#tools > this.#maxTools) tool = other;
    if (this.#series.length >= this.#maxSeries) {
      server = other;
      tool = other;
      errorType = errorType === "" ? "" : other;
    }
    const byTool = nested(nested(this.#tree, method), server);
    const byError = nested(nested(byTool, tool), labels.era);
    let durations = byError.get(errorType);
    if (durations === undefined) {
      durations = new Durations();
      byError.set(errorType, durations);
      this.#series.push({ method, server, tool, era: labels.era, errorType, durations });
    }
    return durations;
  }

  #toErrorType(type: string): string {
    if (type === "" || this.#errorTypes.has(type)) return type;
    if (this.#errorTypes.size >= maxErrorTypes) return other;
    this.#errorTypes.add(type);
    return type;
  }
}

function nested<T>(map: Nested<Nested<T>>, key: string): Nested<T> {
  let inner = map.get(key);
  if (inner === undefined) {
    inner = new Map();
    map.set(key, inner);
  }
  return inner;
}
