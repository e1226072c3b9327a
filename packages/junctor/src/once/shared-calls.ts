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
/** How often a replica looks whether the store forgot what it has, and what could not be written. */
const lookMs = 2000;
/** How often a replica that waits for an end looks, if no news come. */
const waitMs = 500;
/** How long the store may be away before a retry that waits is told so. */
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
export function shareCalls(options: SharedCallsOptions): CallLedger & Disposable {
  const { cluster, seal, keepMs, clock = systemClock, onWarning } = options;
  const { store, membership } = cluster;
  const holder = `once:${membership.id}`;
  const own = new Map<string, OwnCall>();
  const waiting = new Map<string, () => void>();
  let isOver = false;
  let isFailing = false;
  let stopTimer = (): void => {};

  /** Resolves with whether the key is this replica's. */
  const write = async (id: string, call: OwnCall): Promise<boolean> => {
    const left = Math.max(1000, call.expiresAt - clock.now());
    const [renewed] = await Promise.all([
      store.renew([keyOf(id)], holder, left),
      store.write(`${keyOf(id)}:f`, call.fingerprint, left),
      call.end === undefined ? undefined : writeEnd(id, call.end, left),
    ]);
    call.isWritten = true;
    if (call.end !== undefined) await store.publish(JSON.stringify({ kind: newsKind, id })).catch(() => {});
    return renewed[0] === true;
  };
  const writeEnd = async (id: string, end: string, ttlMs: number): Promise<void> => {
    const chunks = toChunks(end);
    // The first comes last: it says how many there are.
    for (let at = chunks.length - 1; at >= 0; at--)
      await store.write(`${keyOf(id)}:e:${at}`, `${chunks.length} ${chunks[at]}`, ttlMs);
  };
  const look = async (): Promise<void> => {
    const now = clock.now();
    for (const [id, { expiresAt, end }] of own) if (end !== undefined && expiresAt <= now) own.delete(id);
    const isYoung = store.isYoung?.(claimMs + lookMs) === true;
    const due = [...own].filter(([, call]) => isYoung || !call.isWritten);
    for (let at = 0; at < due.length; at += 50)
      await Promise.all(due.slice(at, at + 50).map(([id, call]) => write(id, call)));
    isFailing = false;
  };
  const lookAgain = (): void => {
    stopTimer = (clock.idleTimer ?? clock.timer)(lookMs, () => {
      look()
        .catch((error: unknown) => {
          if (!isFailing) onWarning("ends of calls cannot be told to other replicas", error);
          isFailing = true;
        })
        .finally(() => (isOver ? undefined : lookAgain()));
    });
  };
  lookAgain();
  const stopNews = store.onNews((news) => waiting.get(idOf(news) ?? "")?.());

  const readEnd = async (id: string): Promise<KeptEnd | undefined> => {
    const [count, first] = split(await store.read(`${keyOf(id)}:e:0`));
    if (first === undefined) return undefined;
    const rest = Array.from({ length: count - 1 }, (_, at) => store.read(`${keyOf(id)}:e:${at + 1}`));
    const texts = (await Promise.all(rest)).map((text) => split(text)[1]);
    if (texts.includes(undefined)) return undefined;
    const opened = seal.open([first, ...texts].join(""), id);
    return opened.ok ? parseEnd(opened.payload as string) : { kind: "unknown" };
  };
  /** Waits for the end of a call that another replica makes. */
  const follow = async (id: string, at: string): Promise<KeptEnd> => {
    let reachedAt = clock.now();
    for (;;) {
      const news = createDeferred<void>();
      waiting.set(id, news.resolve);
      try {
        const isGone = (await membership.findAgain(at)) === undefined;
        const end = await readEnd(id);
        if (end !== undefined) return end;
        if (isGone) return { kind: "unknown" };
        reachedAt = clock.now();
      } catch (error) {
        if (clock.now() - reachedAt > awayMs) throw unreachable(error);
      } finally {
        waiting.delete(id);
      }
      await Promise.race([news.promise, sleep(waitMs, clock)]);
    }
  };

  return {
    begin: async ({ id, fingerprint }): Promise<EarlierCall | undefined> => {
      try {
        const current = await store.claim(keyOf(id), holder, claimMs);
        if (current !== holder) {
          const known = await readFingerprint(store, id, clock);
          return { fingerprint: known ?? fingerprint, ended: follow(id, current.slice("once:".length)) };
        }
        const call = { fingerprint, expiresAt: clock.now() + keepMs, end: undefined, isWritten: false };
        if (!(await write(id, call))) throw new Error("Another replica took the key meanwhile");
        own.set(id, call);
        return undefined;
      } catch (error) {
        throw unreachable(error);
      }
    },
    end: async (id, end) => {
      const begun = own.get(id);
      if (begun === undefined) return;
      const text = seal.seal(formatEnd(end), id, keepMs);
      const fits = text.length <= chunkLength * maxChunks;
      const shared = fits ? text : seal.seal(formatEnd({ kind: "dropped" }), id, keepMs);
      const call = { ...begun, expiresAt: clock.now() + keepMs, end: shared, isWritten: false };
      own.set(id, call);
      // What cannot be written now is written as soon as the store is back.
      await write(id, call).catch(() => false);
    },
    release: async (id) => {
      own.delete(id);
      await store.release(keyOf(id), holder).catch(() => {});
    },
    [Symbol.dispose]: () => {
      isOver = true;
      stopTimer();
      stopNews();
    },
  };
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

/** What a call is that another replica has taken. It is written right after the key was taken. */
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
