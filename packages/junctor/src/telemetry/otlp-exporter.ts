import { Worker } from "node:worker_threads";
import { type Clock, sleep } from "@junctor/core/async";
import type { Attributes, AttributeValue, EndedSpan, SpanSink } from "./trace.ts";

interface OtlpOptions {
  /** The whole address, which ends with `/v1/traces` at most collectors. */
  readonly endpoint: string;
  readonly headers: { readonly [name: string]: string };
  /** The attributes of this process, such as `service.name`. */
  readonly resource: { readonly [name: string]: AttributeValue };
  readonly version: string;
  readonly clock: Clock;
  /** Called when spans cannot be sent: once, until some were sent again. */
  readonly onFailed: (reason: string) => void;
}

/** Sends spans to a collector. Disposing it sends the spans that wait. */
export interface OtlpExporter extends SpanSink, AsyncDisposable {
  /** How many spans were sent, and how many were dropped. */
  readonly counts: { readonly sent: number; readonly dropped: number };
}

const maxWaiting = 2048;
const maxBatch = 512;
const batchMs = 5000;
const timeoutMs = 10_000;
const maxTries = 4;
/** Statuses after which the same spans may be sent again (OTLP/HTTP, retryable response codes). */
const retried = new Set([429, 502, 503, 504]);

/**
 * Writes spans as OTLP/JSON over HTTP, many at a time. Spans that do not fit while the collector is away are dropped and counted:
 * tracing must neither hold up calls nor fill the memory.
 */
export function createOtlpExporter(options: OtlpOptions): OtlpExporter {
  const { clock } = options;
  const counts = { sent: 0, dropped: 0 };
  const [head, tail] = toFrame(options);
  const headers = { ...options.headers, "content-type": "application/json" };
  const thread = new OtlpThread({ endpoint: options.endpoint, headers, timeoutMs });
  let waiting: EndedSpan[] = [];
  let sending: Promise<void> | undefined;
  let stopTimer: (() => void) | undefined;
  let isFailing = false;

  const send = async (spans: readonly EndedSpan[]): Promise<void> => {
    const reason = await post(`${head}${spans.map(toSpanJson).join(",")}${tail}`, thread, clock);
    if (reason === undefined) counts.sent += spans.length;
    else counts.dropped += spans.length;
    if (reason !== undefined && !isFailing) options.onFailed(reason);
    isFailing = reason !== undefined;
  };
  const drain = async (): Promise<void> => {
    while (waiting.length > 0) {
      const spans = waiting.slice(0, maxBatch);
      waiting = waiting.slice(maxBatch);
      await send(spans);
    }
  };
  const flush = (): Promise<void> => {
    stopTimer?.();
    stopTimer = undefined;
    sending ??= drain().finally(() => {
      sending = undefined;
    });
    return sending;
  };
  return {
    counts,
    add: (span) => {
      if (waiting.length >= maxWaiting) {
        counts.dropped++;
        return;
      }
      waiting.push(span);
      if (waiting.length >= maxBatch) void flush();
      else stopTimer ??= clock.timer(batchMs, () => void flush());
    },
    [Symbol.asyncDispose]: async () => {
      await flush();
      await flush();
      await thread[Symbol.asyncDispose]();
    },
  };
}

/** Resolves with the fault; undefined when the collector took it. */
async function post(body: string, thread: OtlpThread, clock: Clock): Promise<string | undefined> {
  let reason = "";
  for (let tries = 0; tries < maxTries; tries++) {
    if (tries > 0) await sleep(250 * 2 ** tries, clock);
    const answer = await thread.post(body);
    if ("fault" in answer) {
      reason = `the collector cannot be reached (${answer.fault})`;
      continue;
    }
    const { status } = answer;
    if (status >= 200 && status < 300) return undefined;
    reason = `the collector answered with status ${status}`;
    if (!retried.has(status)) return reason;
  }
  return reason;
}

const kinds = { server: 2, client: 3 } as const;

/** The body of an export request before and after its spans, by the JSON form of opentelemetry-proto. */
function toFrame({ resource, version }: OtlpOptions): readonly [string, string] {
  const scope = JSON.stringify({ name: "junctor", version });
  return [
    `{"resourceSpans":[{"resource":{"attributes":${toAttributes(Object.entries(resource).flat())}},"scopeSpans":[{"scope":${scope},"spans":[`,
    "]}]}]}",
  ];
}

/** Put together by hand: to make objects of the wire's form, and `JSON.stringify` of them, takes three times as long. */
function toSpanJson(span: EndedSpan): string {
  const { context, parentSpanId, name, kind, startMs, endMs, attributes, links, isError } = span;
  const parent = parentSpanId === undefined ? "" : `"parentSpanId":"${parentSpanId}",`;
  const linked = links
    .map(({ traceId, spanId }) => `{"traceId":"${traceId}","spanId":"${spanId}"}`)
    .join(",");
  return `{"traceId":"${context.traceId}","spanId":"${context.spanId}",${parent}"flags":1,"name":${JSON.stringify(name)},"kind":${kinds[kind]},"startTimeUnixNano":"${toNanos(startMs)}","endTimeUnixNano":"${toNanos(endMs)}","attributes":${toAttributes(attributes)},"links":[${linked}],"status":${isError ? '{"code":2}' : "{}"}}`;
}

/** A number of nanoseconds since the epoch does not fit into a double: microseconds do. */
function toNanos(ms: number): string {
  return `${Math.round(ms * 1000)}000`;
}

function toAttributes(attributes: Attributes): string {
  let json = "";
  for (let at = 0; at < attributes.length; at += 2) {
    const value = attributes[at + 1];
    if (value === undefined) continue;
    json += `${json === "" ? "" : ","}{"key":${quoteKey(attributes[at])},"value":${toValue(value)}}`;
  }
  return `[${json}]`;
}

const quotedKeys = new Map<unknown, string>();

/** The names of attributes are few: those of our spans, and those of the resource. */
function quoteKey(key: unknown): string {
  let quoted = quotedKeys.get(key);
  if (quoted === undefined) {
    quoted = JSON.stringify(key);
    quotedKeys.set(key, quoted);
  }
  return quoted;
}

function toValue(value: AttributeValue): string {
  if (typeof value === "string") return `{"stringValue":${JSON.stringify(value)}}`;
  if (typeof value === "boolean") return `{"boolValue":${value}}`;
  return Number.isInteger(value) ? `{"intValue":"${value}"}` : `{"doubleValue":${value}}`;
}

/** Where batches are posted, and how long a post may take. */
interface OtlpDestination {
  readonly endpoint: string;
  readonly headers: { readonly [name: string]: string };
  readonly timeoutMs: number;
}

/** The answer of the collector: a status, or the code of the fault that kept it from answering. */
type PostAnswer = { readonly status: number } | { readonly fault: string };

/**
 * The program of the thread. It is text, because a file would have to be found from `src` and from `dist`. It follows no
 * redirects: the headers may hold a key, which is for that collector alone. `fetch` would take three times as long.
 */
const program = `
const { parentPort, workerData } = require("node:worker_threads");
const { endpoint, headers, timeoutMs } = workerData;
const { Agent, request } = require(endpoint.startsWith("https:") ? "node:https" : "node:http");
const agent = new Agent({ keepAlive: true });
const post = (body, tell) => {
  let answer;
  const options = { method: "POST", agent, headers: { ...headers, "content-length": body.length } };
  const posted = request(endpoint, options, (response) => {
    answer = { status: response.statusCode };
    response.resume();
  });
  const timer = setTimeout(() => {
    answer ??= { fault: "no answer in " + timeoutMs / 1000 + " s" };
    posted.destroy();
  }, timeoutMs);
  posted.on("error", (error) => {
    answer ??= { fault: error.code ?? error.message };
  });
  posted.on("close", () => {
    clearTimeout(timer);
    tell(answer ?? { fault: "no answer" });
  });
  posted.end(body);
};
parentPort.on("message", (body) => {
  const tell = (answer) => parentPort.postMessage(answer);
  try {
    post(body, tell);
  } catch (error) {
    tell({ fault: error.message });
  }
});
`;

/**
 * Posts batches of spans from a thread of its own, which is started by the first batch. In the thread of the calls an HTTP client would
 * make every call more expensive: Node's code for sockets is then compiled for more kinds of sockets. One batch at a time.
 */
class OtlpThread implements AsyncDisposable {
  readonly #destination: OtlpDestination;
  #worker: Worker | undefined;

  constructor(destination: OtlpDestination) {
    this.#destination = destination;
  }

  async post(body: string): Promise<PostAnswer> {
    const bytes = new TextEncoder().encode(body); // It has memory of its own, which moves to the thread.
    let worker: Worker;
    try {
      worker = this.#worker ??= this.#start();
    } catch (error) {
      return { fault: `no thread can be started: ${(error as Error).message}` };
    }
    worker.ref(); // The process stays alive for a batch, and not for the thread.
    return new Promise((resolve) => {
      const end = (answer: PostAnswer): void => {
        worker.off("message", end).off("exit", onExit);
        worker.unref();
        resolve(answer);
      };
      const onExit = (): void => end({ fault: "the thread that sends spans ended" });
      worker.on("message", end).on("exit", onExit);
      worker.postMessage(bytes, [bytes.buffer]);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const workerData = this.#destination;
    const worker = new Worker(program, { eval: true, workerData, execArgv: [], env: {} });
    worker.on("error", () => {}); // "exit" follows.
    worker.on("exit", () => {
      this.#worker = undefined;
    });
    return worker;
  }
}
