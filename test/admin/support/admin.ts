import { type IncomingHttpHeaders, request as httpRequest } from "node:http";
import { systemClock } from "../../../packages/core/src/async/clock.ts";
import type { Provider } from "../../../packages/core/src/provider/provider.ts";
import { createKeptLog, type KeptLog } from "../../../packages/junctor/src/admin/kept-log.ts";
import { Observed } from "../../../packages/junctor/src/cli/serve/serve-admin.ts";
import { parseConfigValue } from "../../../packages/junctor/src/config/parse-config.ts";
import { startGateway } from "../../../packages/junctor/src/gateway/gateway.ts";
import type { RunningGateway } from "../../../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../../packages/server/src/http/node.ts";

/** An answer of the admin API. */
export interface AdminReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: AdminBody;
}

interface StepBody {
  readonly state: string;
}

interface CallBody {
  readonly id: string;
  readonly state: string;
  readonly outcome: string;
  readonly steps: readonly StepBody[];
}

/** The members of bodies and events that tests look at; each is there in some of them. */
interface AdminBody extends CallBody {
  readonly error: { readonly code: string; readonly message: string };
  readonly servers: readonly object[];
  readonly status: string;
  readonly nextTryAt: number;
  readonly reason: string;
  readonly advice: string;
  readonly restarts: number;
  readonly problems: readonly object[];
  readonly tools: readonly { readonly name: string }[];
  readonly callers: readonly { readonly name: string; readonly tools: number }[];
  readonly unnamed: boolean;
  readonly underway: readonly CallBody[];
  readonly recent: readonly CallBody[];
  readonly parked: readonly object[];
  readonly lines: readonly object[];
  readonly message: string;
  readonly try: string;
  readonly call: string;
  readonly calls: readonly CallBody[];
  readonly series: readonly object[];
  readonly paths: { readonly [path: string]: object };
}

interface AdminCall {
  readonly method?: string;
  readonly body?: unknown;
  /** Undefined leaves a header out. */
  readonly headers?: { readonly [name: string]: string | undefined };
}

/** A gateway with its admin API, as `junctor serve` has them. */
export interface TestAdmin extends AsyncDisposable {
  readonly gateway: RunningGateway;
  readonly log: KeptLog;
  readonly listener: HttpListener;
  /** Of the MCP endpoint. */
  readonly url: string;
  readonly adminUrl: string;
  readonly key: string;
  readonly isStopAsked: () => boolean;
  /** A request with the key. */
  call(path: string, call?: AdminCall): Promise<AdminReply>;
  /** An event stream with the key. */
  open(path: string, body?: unknown): Promise<EventReader>;
}

interface AdminStart {
  readonly local?: { readonly [name: string]: Provider };
  readonly env?: { readonly [name: string]: string };
  readonly key?: string;
}

export async function startAdmin(
  given: object,
  { local = {}, env = {}, ...more }: AdminStart = {},
): Promise<TestAdmin> {
  const section = { admin: { port: 0 }, ...(given as { readonly junctor?: object }).junctor };
  const config = parseConfigValue({ ...given, junctor: section }, { file: "config", env });
  const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, level: "debug" };
  const log = createKeptLog(silent, systemClock);
  const observed = new Observed({ config, transport: "http", log, file: "config" });
  const { telemetry, onServer, onRefused } = observed;
  const gateway = await startGateway(config, {
    log,
    local,
    firstListMs: 12_000,
    observer: telemetry?.observer,
    onServer,
  });
  const listener = await listenHttp(gateway.server, {
    port: 0,
    graceMs: 200,
    authenticate: gateway.admit,
    onRefused,
    onWarning: () => {},
  });
  let isStopAsked = false;
  const stop = (): void => {
    isStopAsked = true;
  };
  const shown = await observed.show({
    gateway,
    edits: undefined,
    http: listener,
    drain: listener.drain,
    stop,
  });
  await gateway.ready;
  const adminUrl = shown?.url ?? "";
  const key = more.key ?? shown?.key ?? "";
  return {
    gateway,
    log,
    listener,
    url: listener.url,
    adminUrl,
    key,
    isStopAsked: () => isStopAsked,
    call: (path, call) => sendAdmin(`${adminUrl}${path}`, key, call),
    open: (path, body) => openEvents(`${adminUrl}${path}`, key, body),
    [Symbol.asyncDispose]: async () => {
      await listener.close();
      await gateway.close();
      await observed[Symbol.asyncDispose]();
    },
  };
}

/** One request, with any header: `fetch` would not send `Host` and `Origin`. */
export function sendAdmin(
  url: string,
  key: string,
  { method, body, headers = {} }: AdminCall = {},
): Promise<AdminReply> {
  const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
  const all = {
    authorization: `Bearer ${key}`,
    ...(text === undefined ? {} : { "content-type": "application/json" }),
    ...headers,
  };
  const sent = Object.fromEntries(Object.entries(all).filter((pair) => pair[1] !== undefined));
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(
      url,
      {
        method: method ?? (text === undefined ? "GET" : "POST"),
        headers: sent,
      },
      (incoming) => {
        let read = "";
        incoming.setEncoding("utf8").on("data", (chunk: string) => (read += chunk));
        incoming.on("end", () =>
          resolve({
            status: incoming.statusCode ?? 0,
            headers: incoming.headers,
            text: read,
            json: (read.startsWith("{") ? JSON.parse(read) : {}) as AdminBody,
          }),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end(text);
  });
}

interface AdminEvent {
  readonly kind: string;
  readonly data: AdminBody;
}

/** Reads an event stream. */
export class EventReader implements Disposable {
  readonly events: AdminEvent[] = [];
  readonly #abort: AbortController;
  isEnded = false;

  constructor(response: Response, abort: AbortController) {
    this.#abort = abort;
    void this.#read(response).catch(() => {});
  }

  /** Events of a kind so far. */
  of(kind: string): readonly AdminBody[] {
    return this.events.filter((event) => event.kind === kind).map(({ data }) => data);
  }

  /** The first event of a kind. Throws when there is none. */
  first(kind: string): AdminBody {
    const [found] = this.of(kind);
    if (found === undefined) throw new Error(`there is no event ${kind}`);
    return found;
  }

  [Symbol.dispose](): void {
    this.#abort.abort();
  }

  async #read(response: Response): Promise<void> {
    let rest = "";
    const decoder = new TextDecoder();
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      const frames = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
      rest = frames.pop() ?? "";
      for (const frame of frames) {
        const [, kind = "", data = ""] = /^event: (\w+)\ndata: (.*)$/.exec(frame) ?? [];
        if (kind !== "") this.events.push({ kind, data: JSON.parse(data) as AdminBody });
      }
    }
    this.isEnded = true;
  }
}

async function openEvents(url: string, key: string, body: unknown): Promise<EventReader> {
  const abort = new AbortController();
  const response = await fetch(url, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: body === undefined ? null : JSON.stringify(body),
    signal: abort.signal,
  });
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  return new EventReader(response, abort);
}
