import type { Clock } from "../../../packages/core/src/async/clock.ts";
import { createDeferred } from "../../../packages/core/src/async/queue.ts";
import { createMemoryPair } from "../../../packages/core/src/channel/memory.ts";
import { RawJson } from "../../../packages/core/src/json/raw.ts";
import type { Channel } from "../../../packages/core/src/rpc/channel.ts";
import {
  type Message,
  type Request,
  type RequestId,
  toRequestId,
} from "../../../packages/core/src/rpc/message.ts";
import type { Chance } from "./chance.ts";

/** Arguments of every call: what the server does with it, and whose it is. */
export interface CallPlan {
  readonly nonce: string;
  readonly kind: "work" | "progress" | "ask" | "ask-twice" | "hang" | "die" | "deaf" | "fail";
  readonly delayMs: number;
}

/** What the processes of the server saw, all together. */
export interface Sightings {
  /** How often each call was begun. */
  readonly begun: Map<string, number>;
}

const serverInfo = { name: "virtual", version: "1.0.0" };
const capabilities = { tools: { listChanged: true } };
const tools = [{ name: "call", inputSchema: { type: "object" } }];
const schema = { type: "object", properties: { nonce: { type: "string" } } };

/** A process of an MCP server that exists in this one, on a virtual pipe and by a virtual clock. */
export class VirtualProcess {
  /** The client's end of its pipe. */
  readonly channel: Channel;
  readonly exited: Promise<void>;
  readonly #end: Channel;
  readonly #options: ProcessOptions;
  readonly #timers = new Set<() => void>();
  readonly #answers = new Map<RequestId, (result: unknown) => void>();
  readonly #cancelled = new Set<string>();
  readonly #exit = createDeferred<void>();
  #nextId = 1;
  isAlive = true;
  /** It was told to end. */
  isLeaving = false;
  /** It runs and does nothing. */
  isFrozen = false;

  constructor(options: ProcessOptions) {
    this.#options = options;
    const [mine, end] = createMemoryPair();
    this.#end = end;
    this.channel = {
      send: (message) => mine.send(message),
      [Symbol.asyncIterator]: () => mine[Symbol.asyncIterator](),
      [Symbol.asyncDispose]: () => {
        this.isLeaving = true;
        return mine[Symbol.asyncDispose]();
      },
    };
    this.exited = this.#exit.promise;
    void this.#run();
  }

  kill(): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    for (const stop of this.#timers) stop();
    this.#timers.clear();
    void this.#end[Symbol.asyncDispose]();
    this.#exit.resolve();
  }

  /** Sends a message that answers no request. */
  babble(): void {
    this.#send({ kind: "result", id: toRequestId(999_999), result: RawJson.fromValue({}) });
    this.#notify("notifications/progress", { progressToken: 123_456, progress: 1, message: "stray" });
  }

  async #run(): Promise<void> {
    for await (const messages of this.#end) {
      for (const message of messages) {
        if (!this.isAlive) return;
        if (message.kind === "request") this.#take(message);
        if (message.kind === "notification" && message.method === "notifications/cancelled")
          this.#cancelled.add(String(message.params?.at("requestId")?.text));
        if (message.kind === "result") this.#answers.get(message.id)?.(message.result.value);
        if (message.kind === "error" && message.id !== undefined) this.#answers.get(message.id)?.(undefined);
      }
    }
    this.kill();
  }

  #take({ id, method, params }: Request): void {
    const { era, chance, troubleAtStart } = this.#options;
    if (this.isFrozen) return;
    switch (method) {
      case "server/discover":
        if (troubleAtStart === "dies") return this.kill();
        if (troubleAtStart === "mute") return;
        if (era === "legacy") return this.#fail(id, -32601, "Method not found");
        return this.#give(id, {
          supportedVersions: ["2026-07-28"],
          capabilities,
          ttlMs: 0,
          cacheScope: "public",
        });
      case "initialize":
        if (troubleAtStart === "dies") return this.kill();
        if (troubleAtStart === "mute") return;
        if (era === "modern") return this.#fail(id, -32601, "Method not found");
        return this.#give(id, { protocolVersion: "2025-11-25", capabilities, serverInfo });
      case "tools/list":
        return this.#give(id, { tools, ttlMs: 60_000, cacheScope: "public" });
      case "ping":
        return this.#give(id, {});
      case "tools/call":
        return this.#call(id, params!, chance);
      default:
        return this.#fail(id, -32601, "Method not found");
    }
  }

  #call(id: RequestId, params: RawJson, chance: Chance): void {
    const { nonce, kind, delayMs } = params.at("arguments")!.value as CallPlan;
    const isRetry = params.at("requestState") !== undefined;
    const { begun } = this.#options.sightings;
    if (!isRetry) begun.set(nonce, (begun.get(nonce) ?? 0) + 1);
    this.#options.note(`the server begins ${nonce}`);
    const say = (text: string): void => {
      // One that is deaf does not heed that it was cancelled, and answers all the same.
      if (kind === "deaf" || !this.#cancelled.has(id)) this.#give(id, { content: [{ type: "text", text }] });
    };
    const isModern = this.#options.era === "modern";
    switch (kind) {
      case "work":
        return this.#later(delayMs, () => say(nonce));
      case "deaf":
        return this.#later(delayMs * 3, () => say(nonce));
      case "fail":
        return this.#later(delayMs, () => this.#fail(id, -32000, `no luck with ${nonce}`));
      case "hang":
        return;
      case "die":
        return this.#later(delayMs, () => this.kill());
      case "progress": {
        const token = params.at("_meta")?.at("progressToken")?.value;
        const count = 1 + chance.below(4);
        const step = (progress: number): void => {
          if (progress > count) return say(nonce);
          if (token !== undefined)
            this.#notify("notifications/progress", { progressToken: token, progress, message: nonce });
          this.#later(delayMs, () => step(progress + 1));
        };
        return step(1);
      }
      case "ask":
      case "ask-twice": {
        const rounds = kind === "ask" ? 1 : 2;
        if (isModern) return this.#askLater(id, params, nonce, rounds);
        const ask = (round: number): void => {
          if (round > rounds) return say(nonce);
          this.#ask(nonce, (answer) => {
            const said = (answer as { readonly content?: { readonly nonce?: string } } | undefined)?.content
              ?.nonce;
            // An answer of another caller would carry another nonce.
            if (said !== undefined && said !== nonce) return say(`${nonce} was answered by ${said}`);
            this.#later(delayMs, () => ask(round + 1));
          });
        };
        return this.#later(delayMs, () => ask(1));
      }
    }
  }

  /** A modern server ends the round with its question. */
  #askLater(id: RequestId, params: RawJson, nonce: string, rounds: number): void {
    const state = params.at("requestState")?.value as string | undefined;
    const round = state === undefined ? 0 : Number(state.slice(state.lastIndexOf(" ")));
    if (state !== undefined && !state.startsWith(`${nonce} `))
      return this.#fail(id, -32602, `state of ${state}`);
    if (round >= rounds) return this.#give(id, { content: [{ type: "text", text: nonce }] });
    const inputRequests = { form: { method: "elicitation/create", params: toForm(nonce) } };
    this.#give(id, { resultType: "input_required", inputRequests, requestState: `${nonce} ${round + 1}` });
  }

  #ask(nonce: string, take: (result: unknown) => void): void {
    const id = toRequestId(`q${this.#nextId++}`);
    this.#options.note(`the server asks for ${nonce}`);
    this.#answers.set(id, (result) => {
      this.#answers.delete(id);
      this.#options.note(`the server hears ${JSON.stringify(result)} for ${nonce}`);
      if (this.isAlive && !this.isFrozen) take(result);
    });
    this.#send({
      kind: "request",
      id,
      method: "elicitation/create",
      params: RawJson.fromValue(toForm(nonce)),
    });
  }

  #later(ms: number, act: () => void): void {
    if (ms === 0) return act();
    const stop = this.#options.clock.timer(ms, () => {
      this.#timers.delete(stop);
      if (this.isAlive && !this.isFrozen) act();
    });
    this.#timers.add(stop);
  }

  #give(id: RequestId, result: { readonly [member: string]: unknown }): void {
    const type = this.#options.era === "modern" ? { resultType: "complete" } : {};
    this.#send({ kind: "result", id, result: RawJson.fromValue({ ...type, ...result }) });
  }

  #fail(id: RequestId, code: number, message: string): void {
    this.#send({ kind: "error", id, error: { code, message } });
  }

  #notify(method: string, params: object): void {
    this.#send({ kind: "notification", method, params: RawJson.fromValue(params) });
  }

  #send(message: Message): void {
    if (this.isAlive && !this.isFrozen) this.#end.send(message).catch(() => {});
  }
}

function toForm(nonce: string): object {
  return { mode: "form", message: nonce, requestedSchema: schema };
}

export interface ProcessOptions {
  readonly era: "modern" | "legacy";
  readonly clock: Clock;
  readonly chance: Chance;
  readonly sightings: Sightings;
  /** Told what it does, for a replay. */
  readonly note: (text: string) => void;
  /** It dies of the first message, or never answers it. */
  readonly troubleAtStart: "none" | "dies" | "mute";
}
