import type { Awaitable } from "../../async/awaitable.ts";
import { type Clock, systemClock } from "../../async/clock.ts";
import type { Client } from "../../client/client.ts";
import type { ConnectOptions } from "../../client/connect.ts";
import { UpstreamError } from "../../errors/upstream-error.ts";
import { toRelayable } from "../../mcp/capabilities.ts";
import type { CompletionResult } from "../../mcp/types.ts";
import type { CallContext } from "../../tools/context.ts";
import type { ListPart } from "../../tools/fit/list-fault.ts";
import type {
  CompletionRequest,
  Outcome,
  PromptRequest,
  ResourceRequest,
  ToolCall,
  ToolOutcome,
} from "../../tools/provider.ts";
import type { Parking } from "../bridge/parking.ts";
import type { ServerConfig } from "../config/config.ts";
import { FirstLists } from "./first-lists.ts";
import { describeHealth, type Health } from "./health.ts";
import { type CreateLine, createLineFactory } from "./line-factory.ts";
import type { Line } from "./line.ts";
import type { Listed, ListKind } from "./list-keeper.ts";
import { Serving } from "./serving.ts";
import type { StartSlots } from "./start-slots.ts";
import { type Hide, isDoubtful, toUpstreamError } from "./to-upstream-error.ts";
import { UpstreamLists } from "./upstream-lists.ts";
import { Watches } from "./watches.ts";

/** Something about a server behind the gateway changed. */
export type UpstreamChange =
  | { readonly kind: "health"; readonly health: Health; readonly cause: unknown }
  | { readonly kind: "listed"; readonly changed: readonly ListKind[] }
  | { readonly kind: "resource"; readonly uri: string };

export interface UpstreamOptions {
  readonly config: ServerConfig;
  /** Opens a way to the server: what the config says, unless a test or an in-process server wants another. */
  readonly connect: (options: ConnectOptions) => Promise<Client>;
  readonly parking: Parking;
  /** Limits how many processes start at the same time. */
  readonly slots?: StartSlots | undefined;
  /** What it listed when it ran before, if that is known. */
  readonly remembered?: Listed | undefined;
  /** How long after its start its first lists are waited for; 2 s. */
  readonly firstListMs?: number;
  /** The server this one takes the place of, because its config changed: its lists and watches are taken over. */
  readonly predecessor?: Upstream | undefined;
  readonly clock?: Clock;
  /** Takes the secrets of the config out of what callers are told. */
  readonly hide?: Hide;
  readonly onChange: (change: UpstreamChange) => void;
}

/** A server behind the gateway: a client kept alive, the last good lists, and as many more lines as its callers need. */
export class Upstream implements AsyncDisposable {
  /** What of it concerns only how things are listed may be replaced while it runs. */
  config: ServerConfig;
  readonly #options: UpstreamOptions;
  readonly #clock: Clock;
  /** What everybody shares, as long as nothing is declared. Always kept up. */
  readonly #base: Line;
  readonly #lists: UpstreamLists;
  readonly #firstLists: FirstLists;
  readonly #serving: Serving;
  readonly #watches: Watches;
  #isClosed = false;
  #stopIdle: (() => void) | undefined;

  constructor(options: UpstreamOptions) {
    const { config, clock = systemClock, onChange, connect, predecessor, parking, slots } = options;
    const { firstListMs = 2000 } = options;
    this.config = config;
    this.#options = options;
    this.#clock = clock;
    const onResource = (uri: string): void => onChange({ kind: "resource", uri });
    const createLine = createLineFactory({
      config,
      connect,
      clock,
      slots,
      onAsked: () => this.#serving.asked(),
    });
    this.#lists = new UpstreamLists({
      clock,
      createLine,
      known: predecessor?.isListed === true ? predecessor.listedFor("") : options.remembered,
      onListed: (changed) => onChange({ kind: "listed", changed }),
      onResource,
    });
    const { startTimeoutMs } = config;
    this.#firstLists = new FirstLists({ clock, firstListMs, startTimeoutMs, lists: this.#lists });
    // Whoever watches a resource goes on watching, whatever became of its server.
    this.#watches = predecessor === undefined ? new Watches(onResource) : predecessor.#watches;
    this.#watches.onMissed = onResource;
    this.#base = this.#createBase(createLine);
    this.#serving = new Serving({
      config,
      clock,
      base: this.#base,
      variants: this.#lists.variants,
      createLine,
      parking,
      toFailure: (error, line) => this.#failed(error, line),
      onEnded: () => this.#restLater(),
    });
  }

  get name(): string {
    return this.config.name;
  }

  get health(): Health {
    return this.#base.health;
  }

  /** What it lists for callers of a kind; for one that was not seen yet, what it lists for everybody. */
  listedFor(key: string): Listed {
    return this.#lists.listedFor(key);
  }

  /** Whether anything is known of what it lists. */
  get isListed(): boolean {
    return this.#lists.isListed;
  }

  /** Whether everything it lists is known, as it was last listed. */
  get isSettled(): boolean {
    return this.#lists.isSettled;
  }

  /** How many calls it has underway. */
  get inFlight(): number {
    return this.#serving.inFlight;
  }

  /** Starts it, if it is not started. Resolves when it is up and listed, or has failed for the first time. */
  async start(): Promise<void> {
    if (this.health.kind === "idle") this.#firstLists.begin();
    this.#base.start();
    await this.#firstLists.all();
  }

  /**
   * A caller looks at one of its lists: a lazy server that was never listed is started, and old lists are renewed in the
   * background. A promise means that the list is not known yet; it settles when it is, or when it was waited for long enough.
   */
  looked({ capabilities, revision }: CallContext, part: ListPart): Promise<unknown> | undefined {
    if (this.health.kind === "idle" && !this.isListed) void this.start();
    const first = this.#firstLists.forList(part);
    if (first !== undefined || this.health.kind !== "up") return first;
    return this.#lists.looked(this.#isModern ? "" : toRelayable(capabilities, revision).key);
  }

  /**
   * A caller names something that may be in one of its lists. A promise means that the list is not known yet; it settles when
   * it is, when the server failed, or when it was waited for as long as for a start.
   */
  untilListed(part: ListPart, signal: AbortSignal): Promise<unknown> | undefined {
    if (this.health.kind === "idle" && !this.isListed) void this.start();
    const wait = this.#firstLists.forCall(part, signal);
    // A server that a call waits for is started before the others.
    if (wait !== undefined) void this.#base.whenUp(signal).catch(() => {});
    return wait;
  }

  /** Why a call that may have been for it was not sent: nothing is known of what it offers. */
  unavailable(): UpstreamError {
    const why = describeHealth(this.health, this.#clock.now());
    const text = `${this.name} has not listed what it offers yet, so the call was not sent: ${why}.`;
    return new UpstreamError("unavailable", this.name, "not_sent", text);
  }

  /** A legacy conversation is over, and with it what was its own. */
  sessionEnded(session: object): void {
    this.#serving.sessionEnded(session);
  }

  callTool(call: ToolCall, context: CallContext): Awaitable<ToolOutcome> {
    return this.#serving.serve(call.resumption, context, (client, served, resumption) =>
      client.callTool(resumption === call.resumption ? call : { ...call, resumption }, served),
    );
  }

  readResource(request: ResourceRequest, context: CallContext): Awaitable<Outcome> {
    return this.#serving.serve(request.resumption, context, async (client, served, resumption) => {
      if (client.resources === undefined) throw this.#lacks("resources");
      return client.resources.readResource({ ...request, resumption }, served);
    });
  }

  getPrompt(request: PromptRequest, context: CallContext): Awaitable<Outcome> {
    return this.#serving.serve(request.resumption, context, async (client, served, resumption) => {
      if (client.prompts === undefined) throw this.#lacks("prompts");
      return client.prompts.getPrompt({ ...request, resumption }, served);
    });
  }

  /** How long it takes to answer a request that gives it no work; undefined when it does not within `timeoutMs`. */
  async measure(timeoutMs = 5000): Promise<number | undefined> {
    const { client } = this.#base;
    if (client === undefined) return undefined;
    const startedAt = performance.now();
    const method = this.#isModern ? "server/discover" : "ping";
    const limits = { timeoutMs, maxTotalMs: timeoutMs };
    return client.request(method, undefined, limits).then(
      () => performance.now() - startedAt,
      () => undefined,
    );
  }

  async complete(request: CompletionRequest, context: CallContext): Promise<CompletionResult> {
    try {
      const client = await this.#base.whenUp(context.signal);
      this.#restLater();
      if (client.completion === undefined) throw this.#lacks("completion");
      return await client.completion.complete(request, context);
    } catch (error) {
      throw this.#failed(error, this.#base);
    } finally {
      this.#restLater();
    }
  }

  /** Hears of changes of one resource until the returned function is called; also after the server was started again. */
  async watch(uri: string, context: CallContext): Promise<() => void> {
    try {
      const client = await this.#base.whenUp(context.signal);
      const stop = await this.#watches.add(uri, client);
      return () => {
        stop();
        this.#restLater();
      };
    } catch (error) {
      throw this.#failed(error, this.#base);
    }
  }

  /** Lets what is underway finish, but not for longer than this, and ends it. */
  async retire(graceMs: number): Promise<void> {
    await this.#options.parking.leave(this.name);
    await this.#serving.untilIdle(graceMs);
    await this[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#stopIdle?.();
    await Promise.all([
      this.#base[Symbol.asyncDispose](),
      this.#lists[Symbol.asyncDispose](),
      this.#serving[Symbol.asyncDispose](),
    ]);
  }

  get #isModern(): boolean {
    return this.health.kind === "up" && this.health.agreement.mode.kind === "modern";
  }

  #createBase(createLine: CreateLine): Line {
    return createLine(
      {},
      {
        keepsAlive: true,
        onUp: (client) => {
          void this.#lists.begin(client);
          this.#watches.renew(client);
          this.#restLater();
        },
        onHealth: (health, cause) => {
          if (health.kind !== "up") this.#lists.end();
          this.#firstLists.note(health);
          this.#options.onChange({ kind: "health", health, cause });
        },
      },
    );
  }

  /** A lazy server that nobody used for a while is stopped; its lists stay. */
  #restLater(): void {
    const { idleStopMs } = this.config;
    if (idleStopMs === undefined || this.#isClosed) return;
    this.#stopIdle?.();
    this.#stopIdle = this.#clock.timer(idleStopMs, () => {
      if (this.#serving.inFlight === 0 && this.#watches.size === 0) void this.#base.rest();
    });
  }

  #failed(error: unknown, line: Line): unknown {
    if (isDoubtful(error)) line.doubt();
    return toUpstreamError(this.name, error, this.#options.hide);
  }

  #lacks(what: string): UpstreamError {
    return new UpstreamError("failed", this.name, "not_sent", `${this.name} no longer offers ${what}.`);
  }
}
