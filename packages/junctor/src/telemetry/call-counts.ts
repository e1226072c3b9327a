import { CallMetrics } from "./call-metrics.ts";
import type { CallRecord } from "./call-record.ts";
import { type Metric, toExposition, toHistogram } from "./exposition.ts";

/** How many calls are counted together. */
const batch = 64;

/** Everything that is counted of requests, for the metrics and the charts. */
export class CallCounts {
  /** How long requests of clients took. */
  readonly served: CallMetrics = new CallMetrics();
  /** How long servers took for them. */
  readonly #returned = new CallMetrics();
  readonly #questions = new Map<string, number>();
  readonly #refusals = new Map<string, number>();
  /** Calls that ended and are yet to be counted. */
  readonly #waiting: CallRecord[] = [];
  readonly #sums = { ended: 0, failed: 0, bytesIn: 0, bytesOut: 0 };

  /** How many requests were answered, and how many of them with a failure. */
  get totals(): { readonly ended: number; readonly failed: number } {
    this.settle();
    return this.#sums;
  }

  /** A call ended, which had one round. It is counted later, with others: in a loop that costs a quarter. */
  ended(call: CallRecord): void {
    if (this.#waiting.push(call) >= batch) this.settle();
  }

  /** Counts the calls that wait. To be called before anything is read. */
  settle(): void {
    for (const call of this.#waiting) {
      this.roundEnded(call, (call.endedAt ?? 0) - call.startedAt);
    }
    this.#waiting.length = 0;
  }

  /** One round of a call took so long. */
  roundEnded(call: CallRecord, ms: number): void {
    const { method, server = "", name = "", era } = call;
    const errorType = errorTypeOf(call);
    const sums = this.#sums;
    sums.ended++;
    if (errorType !== "") sums.failed++;
    sums.bytesIn += call.bytesIn;
    sums.bytesOut += call.bytesOut;
    // A name that no server has was made up by the caller.
    const tool = method === "tools/call" && server !== "" ? name : "";
    this.served.record({ method, server, tool, era, errorType }, ms / 1000);
    if (call.returnedAt === undefined) return;
    this.returned(call, call.returnedAt - (call.sentAt ?? 0), "");
    call.returnedAt = undefined;
  }

  /** A server behind the gateway answered; `errorType` is empty for a success. */
  returned(call: CallRecord, ms: number, errorType: string): void {
    const { method, server = "", ownName = "", upstreamEra = "" } = call;
    const tool = method === "tools/call" ? ownName : "";
    this.#returned.record({ method, server, tool, era: upstreamEra, errorType }, ms / 1000);
  }

  /** A server asked its caller so many questions. */
  asked(server: string, questions: number): void {
    this.#questions.set(server, (this.#questions.get(server) ?? 0) + questions);
  }

  /** A request was refused before it was a call. */
  refused(reason: string): void {
    this.#refusals.set(reason, (this.#refusals.get(reason) ?? 0) + 1);
  }

  /** As Prometheus text, with the number of requests that are underway and with more metrics. */
  expose(underway: number, more: readonly Metric[]): string {
    this.settle();
    const counter = (name: string, help: string, samples: Metric["samples"]): Metric => ({
      name,
      help,
      type: "counter",
      samples,
    });
    return (
      toHistogram(
        "mcp_server_operation_duration_seconds",
        "Time to answer a request of a client.",
        this.served,
      ) +
      toHistogram(
        "mcp_client_operation_duration_seconds",
        "Time that a server took for a request of a client.",
        this.#returned,
      ) +
      toExposition([
        {
          name: "junctor_calls_in_flight",
          help: "Requests that are being served.",
          type: "gauge",
          samples: [{ value: underway }],
        },
        counter(
          "junctor_questions_total",
          "Questions that servers asked their callers.",
          toSamples("server", this.#questions),
        ),
        counter(
          "junctor_refused_requests_total",
          "HTTP requests that were refused before they were served.",
          toSamples("reason", this.#refusals),
        ),
        counter("junctor_request_bytes_total", "Bytes of the params of requests.", [
          { value: this.#sums.bytesIn },
        ]),
        counter("junctor_response_bytes_total", "Bytes of results.", [{ value: this.#sums.bytesOut }]),
        ...more,
      ])
    );
  }
}

/** What an error is counted under; empty for none. */
function errorTypeOf({ outcome, code }: CallRecord): string {
  switch (outcome) {
    case "ok":
    case "input_required":
    case "task":
      return "";
    case "cancelled":
      return outcome;
    default:
      return code ?? outcome ?? "";
  }
}

function toSamples(label: string, counts: ReadonlyMap<string, number>): Metric["samples"] {
  return Array.from(counts, ([name, value]) => ({ labels: { [label]: name }, value }));
}
