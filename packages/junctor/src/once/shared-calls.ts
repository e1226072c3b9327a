import { type Clock, createDeferred, sleep, systemClock } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import type { Seal } from "@junctor/core/mcp";
import type { Cluster } from "../cluster/index.ts";
import { formatEnd, type KeptEnd, parseEnd } from "./call-end.ts";
import type { CallLedger, EarlierCall } from "./kept-calls.ts";

interface SharedCallsOptions {
  readonly cluster: Pick<Cluster, "store" | "membership">;
  /** Has the secret of all replicas: the store gets ends that it cannot read. */
  readonly seal: Seal;
  readonly keepMs: number;
  readonly clock?: Clock;
  readonly onWarning: (text: string, error?: unknown) => void;
}

/** How long a key is taken at first: nothing is sent before it is prolonged. */
const claimMs = 10_000;
/** How often a replica writes again what the store forgot, or what could not be written. */
const lookMs = 2000;
/** How often a replica that waits for an end looks, if no news come. */
const waitMs = 500;
/** How long the store may be away before a retry that waits fails. */
const awayMs = 10_000;
/** The store takes short values, so an end is written in several; one that needs more is not shared. */
const chunkLength = 4000;
const maxChunks = 64;

/** A call of this replica. */
interface OwnCall {
  readonly fingerprint: string;
  readonly expiresAt: number;
  /** The end, sealed; undefined while it is underway. */
  end: string | undefined;
  /** Whether the store has all of it, as far as this replica knows. */
  isWritten: boolean;
}

/**
 * Keeps calls with keys on the store that replicas share: who began each, and its sealed end. A key is taken by one replica; if that dies
 * before the end is there, the outcome is unknown. An engine that was restarted gives no key away for 10 s, in which replicas
 * write again what they have.
 */
export class SharedCalls implements CallLedger, Disposable {
  readonly #options: SharedCallsOptions;
  readonly #clock: Clock;
  readonly #store: SharedCallsOptions["cluster"]["store"];
  readonly #holder: string;
  readonly #own = new Map<string, OwnCall>();
  /** Wake the retries that wait for the end of another replica's call, by its id. */
  readonly #waiting = new Map<string, () => void>();
  readonly #stopNews: () => void;
  #isOver = false;
  #isFailing = false;
  #stopTimer = (): void => {};

  constructor(options: SharedCallsOptions) {
    const { store, membership } = options.cluster;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#store = store;
    this.#holder = `once:${membership.id}`;
    this.#lookLater();
    this.#stopNews = store.onNews((news) => this.#waiting.get(idOf(news) ?? "")?.());
  }

  async begin({ id, fingerprint }: Parameters<CallLedger["begin"]>[0]): Promise<EarlierCall | undefined> {
    try {
      const current = await this.#store.claim(keyOf(id), this.#holder, claimMs);
      if (current !== this.#holder) {
        const known = await readFingerprint(this.#store, id, this.#clock);
        const ended = this.#awaitEnd(id, current.slice("once:".length));
        return { fingerprint: known ?? fingerprint, ended };
      }
      const expiresAt = this.#clock.now() + this.#options.keepMs;
      const call = { fingerprint, expiresAt, end: undefined, isWritten: false };
      if (!(await this.#write(id, call))) throw new Error("Another replica took the key meanwhile");
      this.#own.set(id, call);
      return undefined;
    } catch (error) {
      throw unreachable(error);
    }
  }

  async end(id: string, end: KeptEnd): Promise<void> {
    const { seal, keepMs } = this.#options;
    const begun = this.#own.get(id);
    if (begun === undefined) return;
    const text = seal.seal(formatEnd(end), id, keepMs);
    const fits = text.length <= chunkLength * maxChunks;
    const shared = fits ? text : seal.seal(formatEnd({ kind: "dropped" }), id, keepMs);
    const call = { ...begun, expiresAt: this.#clock.now() + keepMs, end: shared, isWritten: false };
    this.#own.set(id, call);
    // What cannot be written now is written as soon as the store is back.
    await this.#write(id, call).catch(() => false);
  }

  async release(id: string): Promise<void> {
    this.#own.delete(id);
    await this.#store.release(keyOf(id), this.#holder).catch(() => {});
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#stopTimer();
    this.#stopNews();
  }

  /** Resolves with whether the key is this replica's. */
  async #write(id: string, call: OwnCall): Promise<boolean> {
    const store = this.#store;
    const left = Math.max(1000, call.expiresAt - this.#clock.now());
    const [renewed] = await Promise.all([
      store.renew([keyOf(id)], this.#holder, left),
      store.write(`${keyOf(id)}:f`, call.fingerprint, left),
      call.end === undefined ? undefined : this.#writeEnd(id, call.end, left),
    ]);
    call.isWritten = true;
    if (call.end !== undefined) await store.publish(JSON.stringify({ kind: newsKind, id })).catch(() => {});
    return renewed[0] === true;
  }

  async #writeEnd(id: string, end: string, ttlMs: number): Promise<void> {
    const chunks = toChunks(end);
    // The first comes last: it says how many there are.
    for (let at = chunks.length - 1; at >= 0; at--)
      await this.#store.write(`${keyOf(id)}:e:${at}`, `${chunks.length} ${chunks[at]}`, ttlMs);
  }

  async #readEnd(id: string): Promise<KeptEnd | undefined> {
    const store = this.#store;
    const [count, first] = split(await store.read(`${keyOf(id)}:e:0`));
    if (first === undefined) return undefined;
    const rest = Array.from({ length: count - 1 }, (_, at) => store.read(`${keyOf(id)}:e:${at + 1}`));
    const texts = (await Promise.all(rest)).map((text) => split(text)[1]);
    if (texts.includes(undefined)) return undefined;
    const opened = this.#options.seal.open([first, ...texts].join(""), id);
    return opened.ok ? parseEnd(opened.payload as string) : { kind: "unknown" };
  }

  /** Waits for the end of a call that another replica makes. */
  async #awaitEnd(id: string, at: string): Promise<KeptEnd> {
    const clock = this.#clock;
    let reachedAt = clock.now();
    for (;;) {
      const news = createDeferred<void>();
      this.#waiting.set(id, news.resolve);
      try {
        const isGone = (await this.#options.cluster.membership.findAgain(at)) === undefined;
        const end = await this.#readEnd(id);
        if (end !== undefined) return end;
        if (isGone) return { kind: "unknown" };
        reachedAt = clock.now();
      } catch (error) {
        if (clock.now() - reachedAt > awayMs) throw unreachable(error);
      } finally {
        this.#waiting.delete(id);
      }
      await Promise.race([news.promise, sleep(waitMs, clock)]);
    }
  }

  async #look(): Promise<void> {
    const now = this.#clock.now();
    for (const [id, { expiresAt, end }] of this.#own)
      if (end !== undefined && expiresAt <= now) this.#own.delete(id);
    const isYoung = this.#store.isYoung?.(claimMs + lookMs) === true;
    const due = [...this.#own].filter(([, call]) => isYoung || !call.isWritten);
    for (let at = 0; at < due.length; at += 50)
      await Promise.all(due.slice(at, at + 50).map(([id, call]) => this.#write(id, call)));
    this.#isFailing = false;
  }

  #lookLater(): void {
    const clock = this.#clock;
    this.#stopTimer = (clock.idleTimer ?? clock.timer)(lookMs, () => {
      this.#look()
        .catch((error: unknown) => {
          if (!this.#isFailing)
            this.#options.onWarning("ends of calls cannot be told to other replicas", error);
          this.#isFailing = true;
        })
        .finally(() => (this.#isOver ? undefined : this.#lookLater()));
    });
  }
}

const newsKind = "once";

function keyOf(id: string): string {
  return `once:${id}`;
}

function idOf(news: string): string | undefined {
  try {
    const { kind, id } = Object(JSON.parse(news)) as { readonly kind?: unknown; readonly id?: unknown };
    return kind === newsKind && typeof id === "string" ? id : undefined;
  } catch {
    return undefined;
  }
}

/** The fingerprint of a call that another replica began. It is written right after the key was taken. */
async function readFingerprint(
  store: SharedCallsOptions["cluster"]["store"],
  id: string,
  clock: Clock,
): Promise<string | undefined> {
  for (let tries = 0; tries < 20; tries++) {
    const known = await store.read(`${keyOf(id)}:f`);
    if (known !== undefined) return known;
    await sleep(50, clock);
  }
  return undefined;
}

function toChunks(text: string): readonly string[] {
  const count = Math.max(1, Math.ceil(text.length / chunkLength));
  return Array.from({ length: count }, (_, at) => text.slice(at * chunkLength, (at + 1) * chunkLength));
}

function split(text: string | undefined): readonly [count: number, chunk: string | undefined] {
  const [, count = "", chunk] = /^(\d{1,2}) (.+)$/s.exec(text ?? "") ?? [];
  return [Number(count), chunk];
}

function unreachable(error: unknown): RpcError {
  if (error instanceof RpcError) return error;
  return new RpcError(
    "rpc.overloaded",
    "The store in which calls with keys are noted cannot be reached; nothing was sent",
    { data: { code: "rpc.overloaded", delivery: "not_sent", retryAfterMs: 1000 }, cause: error },
  );
}
