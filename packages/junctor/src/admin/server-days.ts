import type { OnServer } from "../gateway/index.ts";

type Health = NonNullable<Parameters<OnServer>[1]>;

/** How a server was in a quarter of an hour: the worst of it. */
const marks = { unknown: "-", idle: "i", up: "u", starting: "s", down: "d" } as const;
type Mark = keyof typeof marks;
/** Marks by rank: a quarter of an hour shows its highest. `up` outranks `starting`, which is no trouble. */
const order: readonly Mark[] = ["unknown", "idle", "starting", "up", "down"];

const slotMs = 15 * 60_000;
const slots = 96;
const maxChanges = 50;
/** Names of servers come and go with edits of the config. */
const maxServers = 5000;

/** One change of a server. */
export interface ServerChange {
  readonly at: number;
  readonly status: "idle" | "starting" | "up" | "down" | "stopped";
  readonly reason?: string;
}

interface Day {
  readonly marks: Uint8Array;
  slot: number;
  now: Mark;
  /** When it went down; undefined once it is up or idle again. */
  leftUpAt: number | undefined;
  readonly changes: ServerChange[];
}

/** How each server was over the last 24 hours, and its last changes. It is kept for 5,000 servers at most. */
export class ServerDays {
  readonly #days = new Map<string, Day>();

  /** A server is in this state. */
  note(server: string, health: Health, date: number): void {
    const day = this.#dayOf(server, date);
    const status = health.kind === "waiting" ? "starting" : health.kind;
    const mark = status === "stopped" ? "idle" : status;
    const last = day.changes.at(-1);
    const reason = health.kind === "down" ? health.reason : undefined;
    if (last?.status === status && last.reason === reason) return;
    fill(day, date);
    day.now = mark;
    worsen(day, mark);
    if (mark === "up" || mark === "idle") day.leftUpAt = undefined;
    else if (mark === "down") day.leftUpAt ??= date;
    day.changes.push({ at: date, status, ...(reason === undefined ? {} : { reason }) });
    if (day.changes.length > maxChanges) day.changes.shift();
  }

  /** One letter for each quarter of an hour, the oldest first. */
  marksOf(server: string, date: number): string {
    const day = this.#dayOf(server, date);
    fill(day, date);
    return Array.from(
      { length: slots },
      (_, index) => marks[order[day.marks[(day.slot + 1 + index) % slots] ?? 0] ?? "unknown"],
    ).join("");
  }

  /** Since when it is in trouble. */
  troubleSince(server: string): number | undefined {
    return this.#days.get(server)?.leftUpAt;
  }

  changesOf(server: string): readonly ServerChange[] {
    return this.#days.get(server)?.changes ?? [];
  }

  #dayOf(server: string, date: number): Day {
    const known = this.#days.get(server);
    if (known !== undefined) return known;
    const slot = Math.floor(date / slotMs);
    const day: Day = {
      marks: new Uint8Array(slots),
      slot,
      now: "unknown",
      leftUpAt: undefined,
      changes: [],
    };
    this.#days.set(server, day);
    const [oldest] = this.#days.keys();
    if (this.#days.size > maxServers && oldest !== undefined) this.#days.delete(oldest);
    return day;
  }
}

/** Advances to the slot of this date. A clock that was set back changes nothing. */
function fill(day: Day, date: number): void {
  const slot = Math.floor(date / slotMs);
  if (slot - day.slot > slots) day.slot = slot - slots;
  while (day.slot < slot) {
    day.slot++;
    day.marks[day.slot % slots] = order.indexOf(day.now);
  }
}

function worsen(day: Day, mark: Mark): void {
  const at = day.slot % slots;
  day.marks[at] = Math.max(day.marks[at] ?? 0, order.indexOf(mark));
}
