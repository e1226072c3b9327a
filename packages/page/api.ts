import { decode } from "./route.ts";

/** The admin API refused a request, or could not be reached (status 0). */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** One event of an event stream, of the kinds that `Events` has. */
export type StreamEvent<Events> = {
  readonly [Kind in keyof Events]: { readonly kind: Kind; readonly data: Events[Kind] };
}[keyof Events];

export interface Api {
  get<T>(path: string, signal?: AbortSignal): Promise<T>;
  send<T>(method: "POST" | "PUT" | "DELETE", path: string, body?: object): Promise<T>;
  /** Reads an event stream until it ends or the signal is aborted. Throws when it cannot be opened or breaks. */
  stream<Events>(
    path: string,
    onEvent: (event: StreamEvent<Events>) => void,
    options: StreamOptions,
  ): Promise<void>;
}

export interface StreamOptions {
  readonly signal: AbortSignal;
  /** Sent by POST; without it, the stream is read by GET. */
  readonly body?: object;
}

const keyItem = "junctor-key";

/** The key in the address, which is then removed from the address bar, or else the one that this tab keeps. */
export function takeKey(): string | undefined {
  const inAddress = /^#key=(.+)$/.exec(location.hash)?.[1];
  if (inAddress === undefined) return sessionStorage.getItem(keyItem) ?? undefined;
  const key = decode(inAddress);
  sessionStorage.setItem(keyItem, key);
  location.replace("#/");
  return key;
}

export function keepKey(key: string): void {
  sessionStorage.setItem(keyItem, key);
}

export function createApi(key: string): Api {
  const request = async (method: string, path: string, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${key}`);
    if (init.body !== undefined) headers.set("content-type", "application/json");
    const response = await fetch(path, { ...init, method, headers }).catch((error: unknown) => {
      if (init.signal?.aborted === true) throw error;
      throw new ApiError(0, "unreachable", "The gateway does not answer.");
    });
    if (!response.ok) throw await toError(response);
    return response;
  };
  return {
    get: async <T>(path: string, signal?: AbortSignal) => {
      const response = await request("GET", path, signal === undefined ? {} : { signal });
      return (await response.json()) as T;
    },
    send: async <T>(method: string, path: string, body: object = {}) => {
      const response = await request(method, path, { body: JSON.stringify(body) });
      const text = await response.text();
      return (text === "" ? {} : JSON.parse(text)) as T;
    },
    stream: async (path, onEvent, { signal, body }) => {
      const init = body === undefined ? { signal } : { signal, body: JSON.stringify(body) };
      const response = await request(body === undefined ? "GET" : "POST", path, init);
      if (response.body !== null) await readEvents(response.body, onEvent);
    },
  };
}

async function toError(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as { error: { code: string; message: string } };
    return new ApiError(response.status, error.code, error.message);
  } catch {
    return new ApiError(response.status, "unknown", `The gateway answered ${response.status}.`);
  }
}

/** Events are `event: KIND` and lines of `data:`, ended by an empty line; lines that begin with a colon are comments. */
async function readEvents<Events>(
  body: ReadableStream<Uint8Array>,
  onEvent: (event: StreamEvent<Events>) => void,
): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let kind = "message";
  let data: string[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("event:")) kind = line.slice(6).trim();
      else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
      else if (line === "" && data.length > 0) {
        onEvent({ kind, data: JSON.parse(data.join("\n")) as unknown } as StreamEvent<Events>);
        kind = "message";
        data = [];
      }
    }
  }
}
