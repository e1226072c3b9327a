import { Durations } from "./durations.ts";

/** The labels that a duration is counted under. An empty text stands for none. */
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

/**
 * Durations of calls by method, server, tool, era and error type. The number of series is limited: a client or a server that
 * makes up names costs no memory.
 */
export class CallMetrics {
  readonly #maxTools: number;
  readonly #maxSeries: number;
  readonly #series: CallSeries[] = [];
  /** The series of each tool, and of each method without one: one look-up finds the few that differ in the rest. */
  readonly #byName = new Map<string, CallSeries[]>();
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
    (this.#find(labels) ?? this.#add(labels)).durations.add(seconds);
  }

  #find(labels: CallLabels): CallSeries | undefined {
    const known = this.#byName.get(nameOf(labels));
    if (known === undefined) return undefined;
    const { method, server, era, errorType } = labels;
    for (const each of known)
      if (
        each.server === server &&
        each.era === era &&
        each.errorType === errorType &&
        each.method === method &&
        each.tool === labels.tool
      )
        return each;
    return undefined;
  }

  /** The series of labels that have none, or that share one with others. */
  #add(given: CallLabels): CallSeries {
    const { era } = given;
    const method = methods.has(given.method) ? given.method : other;
    let { server, tool } = given;
    let errorType = this.#toErrorType(given.errorType);
    if (tool !== "" && !this.#hasTool(given)) {
      if (this.#tools >= this.#maxTools) tool = other;
      else this.#tools++;
    }
    if (this.#series.length >= this.#maxSeries) {
      server = other;
      tool = other;
      errorType = errorType === "" ? "" : other;
    }
    const labels = { method, server, tool, era, errorType };
    const found = this.#find(labels);
    if (found !== undefined) return found;
    const series = { ...labels, durations: new Durations() };
    this.#series.push(series);
    const name = nameOf(labels);
    this.#byName.set(name, [...(this.#byName.get(name) ?? []), series]);
    return series;
  }

  #hasTool({ server, tool }: CallLabels): boolean {
    return this.#byName.get(tool)?.some((each) => each.tool === tool && each.server === server) === true;
  }

  #toErrorType(type: string): string {
    if (type === "" || this.#errorTypes.has(type)) return type;
    if (this.#errorTypes.size >= maxErrorTypes) return other;
    this.#errorTypes.add(type);
    return type;
  }
}

function nameOf({ tool, method }: CallLabels): string {
  return tool === "" ? method : tool;
}
