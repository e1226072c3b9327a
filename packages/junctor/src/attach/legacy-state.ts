import type { Buffer } from "node:buffer";
import { scanMessage, type Scanned, withId } from "./lines.ts";

/** Most subscriptions that are repeated; a client with more hears less after the daemon was lost. */
const maxSubscriptions = 1024;

/** The facts of a legacy session that the next gateway must be told again, so that the client notices nothing. */
export class LegacyState {
  /** The `initialize` request of the client, once it was answered. */
  #initialize: Buffer | undefined;
  #initialized: Buffer | undefined;
  #level: Buffer | undefined;
  /** By their URIs. */
  readonly #subscriptions = new Map<string, Buffer>();
  /** The kinds of lists whose changes the gateway announces. */
  #announces: readonly string[] = [];

  /** Whether the client believes that it has a session. */
  get isOpen(): boolean {
    return this.#initialize !== undefined;
  }

  /** The handshake was answered. */
  begin(initialize: Buffer, answer: Buffer): void {
    this.#initialize = initialize;
    this.#subscriptions.clear();
    this.#level = undefined;
    this.learn(answer);
  }

  /** Takes from the answer to a handshake which changes of lists are announced. */
  learn(answer: Buffer): void {
    const { result } = parse(answer) as {
      result?: { capabilities?: { [kind: string]: { listChanged?: boolean } } };
    };
    const capabilities = result?.capabilities ?? {};
    this.#announces = ["tools", "prompts", "resources"].filter(
      (kind) => capabilities[kind]?.listChanged === true,
    );
  }

  /** Looks at what the client sends, and keeps what must be repeated. */
  note({ method }: Scanned, line: Buffer): void {
    if (method === "notifications/initialized") this.#initialized = line;
    else if (method === "logging/setLevel") this.#level = line;
    else if (method === "resources/subscribe") {
      if (this.#subscriptions.size < maxSubscriptions) this.#subscriptions.set(uriOf(line), line);
    } else if (method === "resources/unsubscribe") this.#subscriptions.delete(uriOf(line));
  }

  /** The handshake, under an id of our own. */
  handshake(id: string): Buffer | undefined {
    return this.#initialize && withOwnId(this.#initialize, id);
  }

  /** What follows the handshake: the notice that it is done, and requests, each with an id of our own. */
  afterHandshake(nextId: () => string): readonly (readonly [string | undefined, Buffer])[] {
    const requests = [this.#level, ...this.#subscriptions.values()].flatMap((line) => {
      const id = nextId();
      return line === undefined ? [] : [[id, withOwnId(line, id)] as const];
    });
    return [
      ...(this.#initialized === undefined ? [] : [[undefined, this.#initialized] as const]),
      ...requests,
    ];
  }

  /** The announcements for the client after another gateway took over: anything may have changed meanwhile. */
  announcements(): readonly string[] {
    const lists = this.#announces.map((kind) =>
      JSON.stringify({ jsonrpc: "2.0", method: `notifications/${kind}/list_changed` }),
    );
    const resources = Array.from(this.#subscriptions.keys(), (uri) =>
      JSON.stringify({ jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri } }),
    );
    return [...lists, ...resources];
  }
}

/** The announcements for a modern caller that listens: its lists may be others now. */
export function announcementsFor(listen: Buffer): readonly string[] {
  const { id, params } = parse(listen) as {
    id?: unknown;
    params?: { notifications?: { [name: string]: unknown } };
  };
  const wanted = params?.notifications ?? {};
  return ["tools", "prompts", "resources"]
    .filter((kind) => wanted[`${kind}ListChanged`] === true)
    .map((kind) =>
      JSON.stringify({
        jsonrpc: "2.0",
        method: `notifications/${kind}/list_changed`,
        params: { _meta: { "io.modelcontextprotocol/subscriptionId": id } },
      }),
    );
}

/** The id that a cancellation is about, as JSON. */
export function cancelledId(line: Buffer): string | undefined {
  const { params } = parse(line) as { params?: { requestId?: unknown } };
  return params?.requestId === undefined ? undefined : JSON.stringify(params.requestId);
}

/** The ids of the requests in a batch, as JSON, with their methods. */
export function idsOfBatch(line: Buffer): readonly (readonly [string, string])[] {
  const batch = parse(line);
  if (!Array.isArray(batch)) return [];
  return batch.flatMap((each: unknown) => {
    const { id, method } = (each ?? {}) as { id?: unknown; method?: unknown };
    return id === undefined || typeof method !== "string" ? [] : [[JSON.stringify(id), method] as const];
  });
}

/** The ids of the answers in a batch, as JSON. */
export function answersOfBatch(line: Buffer): readonly string[] {
  const batch = parse(line);
  if (!Array.isArray(batch)) return [];
  return batch.flatMap((each: unknown) => {
    const { id, method } = (each ?? {}) as { id?: unknown; method?: unknown };
    return id === undefined || method !== undefined ? [] : [JSON.stringify(id)];
  });
}

function withOwnId(line: Buffer, id: string): Buffer {
  const { idAt } = scanMessage(line);
  return idAt === undefined ? line : withId(line, idAt, id);
}

function uriOf(line: Buffer): string {
  const { params } = parse(line) as { params?: { uri?: unknown } };
  return String(params?.uri);
}

/** A line that is no JSON says nothing; the gateway answers it. */
function parse(line: Buffer): object {
  try {
    return (JSON.parse(line.toString("utf8")) ?? {}) as object;
  } catch {
    return {};
  }
}
