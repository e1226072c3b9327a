import { initializeOf, legacyCall, mirrored, modernCall, postOf } from "../../support/http-wire.ts";
import { type Message, type RawReply, RawSocket } from "../../support/raw-http.ts";
import type { Frame } from "../../support/wire-schema.ts";

/** One call and how it ended. */
export interface CallRecord {
  readonly server: string;
  readonly nonce: string;
  readonly startedAt: number;
  /** When the system had taken the whole request; infinite if it did not. */
  readonly sentAt: number;
  readonly endedAt: number;
  readonly outcome: CallOutcome;
}

export type CallOutcome =
  | { readonly kind: "result"; readonly text: string }
  | { readonly kind: "error"; readonly code: string; readonly delivery: string; readonly server: string }
  /** No outcome at all, several, or one that does not say what it must. */
  | { readonly kind: "wrong"; readonly what: string };

/** What is called, how often, and for how long the tool works. */
export interface LoadOptions {
  readonly port: number;
  readonly servers: readonly string[];
  readonly callsPerSecond: number;
  readonly workMs?: (index: number) => number;
}

/** Calls that are made at a steady rate, whether or not the earlier ones were answered, until stopped. */
export interface Load {
  /** Resolves when so many calls were made. */
  made(count: number): Promise<void>;
  /** For how much of this time this process, the gateway included, wanted to run and was not let, because others were. */
  starvedMs(from: number, to: number): number;
  /** Ends it and resolves with every call, in the order they ended, once the last has. */
  stop(): Promise<readonly CallRecord[]>;
}

let nextNonce = 0;

/** Calls the tool `work` of each server in turn; every second round of them as a legacy client. */
export async function startLoad(options: LoadOptions): Promise<Load> {
  const { servers, callsPerSecond, workMs = () => 0 } = options;
  const callers = [new Callers(options.port, undefined), await Callers.legacy(options.port)];
  const records: CallRecord[] = [];
  const underway = new Set<Promise<void>>();
  const beganAt = performance.now();
  const waiting = new Set<{ readonly count: number; readonly resolve: () => void }>();
  let made = 0;

  const call = async (index: number): Promise<void> => {
    const server = servers[index % servers.length]!;
    const nonce = `n${nextNonce++}`;
    const startedAt = performance.now();
    const caller = callers[Math.floor(index / servers.length) % callers.length]!;
    let sentAt = (): number => Infinity;
    const args = { nonce, ms: workMs(index) };
    const outcome = await caller.call(`${server}__work`, args, (reply) => (sentAt = () => reply.sentAt));
    records.push({ server, nonce, startedAt, sentAt: sentAt(), endedAt: performance.now(), outcome });
  };
  const starvation = new Starvation();
  const timer = setInterval(() => {
    starvation.tick();
    const due = ((performance.now() - beganAt) / 1000) * callsPerSecond;
    for (; made < due; made++) {
      const done: Promise<void> = call(made).finally(() => underway.delete(done));
      underway.add(done);
    }
    for (const wait of waiting) {
      if (made < wait.count) continue;
      waiting.delete(wait);
      wait.resolve();
    }
  }, 1);
  return {
    made: (count) => new Promise((resolve) => void waiting.add({ count, resolve })),
    starvedMs: (from, to) => starvation.between(from, to),
    stop: async () => {
      clearInterval(timer);
      await Promise.all(underway);
      for (const caller of callers) caller[Symbol.dispose]();
      return records;
    },
  };
}

/** Tells waiting for the processor from working: a time between two ticks in which hardly any of it was used. */
class Starvation {
  readonly #gaps: { readonly endedAt: number; readonly ms: number }[] = [];
  #lastAt = performance.now();
  #last = process.cpuUsage();

  tick(): void {
    const now = performance.now();
    const { user, system } = process.cpuUsage(this.#last);
    const ms = now - this.#lastAt - (user + system) / 1000;
    if (ms > 5) this.#gaps.push({ endedAt: now, ms });
    this.#lastAt = now;
    this.#last = process.cpuUsage();
  }

  between(from: number, to: number): number {
    const within = this.#gaps.filter(({ endedAt }) => endedAt > from && endedAt <= to);
    return within.reduce((sum, { ms }) => sum + ms, 0);
  }
}

/** Callers of one era, each with a socket of its own; as many as there are calls at once. */
export class Callers implements Disposable {
  readonly #port: number;
  readonly #session: string | undefined;
  readonly #all = new Set<RawSocket>();
  readonly #idle: { readonly socket: RawSocket; readonly usableUntil: number }[] = [];
  /** No two calls of a session that are underway may have the same. */
  #nextId = 1;

  constructor(port: number, session: string | undefined) {
    this.#port = port;
    this.#session = session;
  }

  static async legacy(port: number): Promise<Callers> {
    using socket = new RawSocket(port);
    const reply = await socket.send(postOf(initializeOf("2025-11-25"))).complete;
    return new Callers(port, reply.headers["mcp-session-id"]);
  }

  async call(name: string, args: object, onSend?: (reply: RawReply) => void): Promise<CallOutcome> {
    const isModern = this.#session === undefined;
    const frame = isModern ? modernCall(name, args) : legacyCall(this.#nextId++, name, args);
    const headers = isModern ? mirrored(frame) : { "mcp-session-id": this.#session };
    const socket = this.#takeIdle() ?? new RawSocket(this.#port);
    this.#all.add(socket);
    try {
      const sent = socket.send(postOf(frame, headers));
      onSend?.(sent);
      const reply = await sent.complete;
      this.#idle.push({ socket, usableUntil: performance.now() + idleMs(reply) });
      return toOutcome(reply.messages, frame.id);
    } catch (error) {
      return { kind: "wrong", what: String(error) };
    }
  }

  /** As any HTTP client: a socket that the gateway closed, or is about to close, is not used again. */
  #takeIdle(): RawSocket | undefined {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (performance.now() < idle.usableUntil && !idle.socket.socket.destroyed) return idle.socket;
      idle.socket[Symbol.dispose]();
      this.#all.delete(idle.socket);
    }
    return undefined;
  }

  [Symbol.dispose](): void {
    for (const socket of this.#all) socket[Symbol.dispose]();
  }
}

/** How long the socket of a reply may be idle: half of what the gateway says in `Keep-Alive`. */
function idleMs({ headers }: RawReply): number {
  const seconds = /timeout=(\d+)/.exec(headers["keep-alive"] ?? "")?.[1];
  return seconds === undefined ? 1000 : Number(seconds) * 500;
}

function toOutcome(messages: readonly Message[], id: Frame["id"]): CallOutcome {
  const [answer, ...others] = messages.filter(({ method }) => method === undefined);
  const wrong: CallOutcome = { kind: "wrong", what: JSON.stringify(messages) };
  if (answer === undefined || answer.id !== id || others.length > 0) return wrong;
  const { content } = (answer.result ?? {}) as { readonly content?: readonly { readonly text?: string }[] };
  const text = content?.[0]?.text;
  if (text !== undefined) return { kind: "result", text };
  const { code, delivery, server } = (answer.error?.data ?? {}) as { readonly [key: string]: unknown };
  return typeof code === "string" && typeof delivery === "string" && typeof server === "string"
    ? { kind: "error", code, delivery, server }
    : wrong;
}
