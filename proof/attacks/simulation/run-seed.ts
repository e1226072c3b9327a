import type { SimulatedCall } from "./call.ts";
import { type Chance, createChance } from "./chance.ts";
import type { CallPlan } from "./virtual-process.ts";
import { describeTimers, World } from "./world.ts";

/** What one seed came to. */
export interface SeedResult {
  readonly seed: number;
  readonly steps: number;
  readonly calls: number;
  readonly results: number;
  readonly kills: number;
  /** Broken invariants; the first ones count. */
  readonly faults: readonly string[];
  /** The steps, for a replay. */
  readonly trace: readonly string[];
}

const kinds: readonly CallPlan["kind"][] = [
  "work",
  "work",
  "progress",
  "progress",
  "ask",
  "ask",
  "ask-twice",
  "hang",
  "die",
  "deaf",
  "fail",
];
const delaysMs = [0, 0, 1, 20, 500, 3000, 12_000] as const;
const waitsMs = [0, 1, 30, 100, 600, 2000, 6000, 31_000] as const;

/** Everything open ends within this time: the longest call, the longest parking, and the restarts before it. */
const drainMs = 400_000;

/** Runs one world to its end. The same seed gives the same run. */
export async function runSeed(seed: number): Promise<SeedResult> {
  const usualRandom = Math.random;
  // There are thousands of errors, and only a replay shows where they come from.
  if (process.env["SCORECARD_REPLAY"] !== "yes") Error.stackTraceLimit = 0;
  const chance = createChance(seed);
  // Back-off jitter is drawn from here.
  Math.random = () => chance.below(1000) / 1000;
  try {
    return await new Run(seed, chance).finish();
  } finally {
    Math.random = usualRandom;
  }
}

class Run {
  readonly #seed: number;
  readonly #chance: Chance;
  readonly #world: World;
  readonly #calls: SimulatedCall[] = [];
  readonly #faults: string[] = [];
  readonly #trace: string[] = [];
  #kills = 0;

  constructor(seed: number, chance: Chance) {
    this.#seed = seed;
    this.#chance = chance;
    this.#world = new World(chance);
    this.#trace.push(this.#world.facts);
    this.#world.note = (text) => this.#note(text);
  }

  async finish(): Promise<SeedResult> {
    const chance = this.#chance;
    const onRejection = (reason: unknown): void => {
      this.#faults.push(`unhandled rejection: ${String(reason)}`);
    };
    process.on("unhandledRejection", onRejection);
    for (const caller of this.#world.legacy) caller.initialize();
    const steps = 8 + chance.below(25);
    for (let step = 0; step < steps && this.#faults.length === 0; step++) {
      await this.#step();
      this.#check();
    }
    if (this.#faults.length === 0) await this.#drain();
    await this.#close();
    process.off("unhandledRejection", onRejection);
    const ends = this.#calls.flatMap(({ ends }) => ends);
    return {
      seed: this.#seed,
      steps,
      calls: this.#calls.length,
      results: ends.filter(({ kind }) => kind === "result").length,
      kills: this.#kills,
      faults: this.#faults,
      trace: this.#trace,
    };
  }

  /** Something happens; what is in flight may arrive before, after or much later. */
  async #step(): Promise<void> {
    const world = this.#world;
    const chance = this.#chance;
    const roll = chance.below(100);
    const modern = chance.pick(world.modern);
    const legacy = chance.pick(world.legacy);
    if (roll < 32) this.#call();
    else if (roll < 38) this.#note(`${modern.name} answers: ${modern.answer(chance)}`);
    else if (roll < 44) this.#note(`${legacy.name} answers: ${legacy.answer(chance)}`);
    else if (roll < 47) this.#note(`${modern.name} abandons: ${modern.abandon(chance)}`);
    else if (roll < 51) this.#note(`${modern.name} hangs up: ${modern.hangUp(chance)}`);
    else if (roll < 57) this.#note(`the wire of ${legacy.name} breaks: ${legacy.breakWire(chance)}`);
    else if (roll < 63) this.#resume(legacy);
    else if (roll < 66) this.#note(`${legacy.name} cancels: ${legacy.cancel(chance)}`);
    else if (roll < 68) this.#renew(legacy);
    else if (roll < 72) this.#stall();
    else if (roll < 79) this.#hurtProcess();
    else if (roll < 82) {
      world.nextStart = chance.pick(["fails", "dies", "mute"]);
      this.#note(`the next start: ${world.nextStart}`);
    } else await this.#wait(chance.pick(waitsMs));
    const turns = chance.below(4);
    for (let each = 0; each < turns; each++) {
      await turn();
      world.network.deliver(chance);
    }
    if (turns < 3) return;
    // A line that makes room for another takes some turns to close.
    for (let each = 0; each < 6; each++) await turn();
    this.#checkProcesses();
  }

  #call(): void {
    const world = this.#world;
    const chance = this.#chance;
    const caller = chance.pick([...world.modern, ...world.legacy]);
    const nonce = `n${this.#calls.length}-${caller.name}`;
    const plan = { nonce, kind: chance.pick(kinds), delayMs: chance.pick(delaysMs) };
    const call = caller.call(plan);
    this.#note(`${caller.name} calls ${nonce} ${plan.kind} ${plan.delayMs} ms: ${call !== undefined}`);
    if (call !== undefined) this.#calls.push(call);
  }

  #resume(legacy: World["legacy"][number]): void {
    this.#note(`${legacy.name} resumes`);
    legacy.resumeAll();
  }

  #renew(legacy: World["legacy"][number]): void {
    this.#note(`${legacy.name} ends its session and begins another`);
    legacy.delete();
    legacy.initialize();
  }

  #stall(): void {
    const connection = this.#chance.pick(this.#world.network.open);
    if (connection === undefined) return;
    connection.stall(!connection.isStalled);
    this.#note(`a reader ${connection.isStalled ? "stalls" : "reads on"}`);
  }

  #hurtProcess(): void {
    const process = this.#chance.pick(this.#world.alive);
    if (process === undefined) return;
    const how = this.#chance.pick(["is killed", "is killed", "freezes", "babbles"] as const);
    this.#note(`a process ${how}`);
    if (how === "is killed") {
      this.#kills++;
      process.kill();
    } else if (how === "freezes") process.isFrozen = true;
    else process.babble();
  }

  async #wait(ms: number): Promise<void> {
    this.#note(`${ms} ms pass`);
    await this.#world.clock.advance(ms);
  }

  /** No more faults: everything that was begun ends, in bounded time. */
  async #drain(): Promise<void> {
    const world = this.#world;
    const chance = this.#chance;
    this.#note("no more faults");
    world.nextStart = "none";
    const isBusy = (): boolean => [...world.modern, ...world.legacy].some((caller) => caller.isBusy);
    const until = world.clock.now() + drainMs;
    while (isBusy() && world.clock.now() < until && this.#faults.length === 0) {
      for (const connection of world.network.open) connection.stall(false);
      for (const caller of world.legacy) caller.resumeAll();
      for (const caller of [...world.legacy, ...world.modern]) while (caller.answer(chance));
      await turn();
      if (world.network.deliver(undefined)) continue;
      await world.clock.advance(3000);
      this.#check();
    }
    if (isBusy()) this.#faults.push(`calls are open after ${drainMs} ms: ${this.#openCalls().join(", ")}`);
  }

  #openCalls(): readonly string[] {
    return this.#calls
      .filter(({ isOpen }) => isOpen)
      .map(({ plan, caller }) => `${plan.nonce} ${plan.kind} of ${caller}`);
  }

  /** After the end nothing is left: no call, process, timer, parked call or stored stream. */
  async #close(): Promise<void> {
    const world = this.#world;
    for (const caller of world.legacy) caller.leaveAll();
    const closing = { isDone: false };
    void world.close().then(() => {
      closing.isDone = true;
    });
    for (let round = 0; round < 20 && !closing.isDone; round++) await world.clock.advance(1000);
    for (let round = 0; round < 3; round++) {
      await turn();
      for (const connection of world.network.open) connection.stall(false);
      world.network.deliver(undefined);
    }
    if (this.#faults.length > 0) return;
    this.#checkCalls();
    const left = {
      "open calls": this.#openCalls().length,
      "open connections": world.network.open.length,
      processes: world.alive.length,
      timers: world.clock.sleeping,
      "parked calls": world.parking.size,
      "stored streams": world.stored.size,
      "unfinished closings": closing.isDone ? 0 : 1,
    };
    if (left.timers > 0) this.#note(`timers left: ${describeTimers()}`);
    for (const [what, count] of Object.entries(left))
      if (count > 0) this.#faults.push(`${count} ${what} left`);
  }

  #checkProcesses(): void {
    const { limits, alive } = this.#world;
    const staying = alive.filter(({ isLeaving }) => !isLeaving).length;
    if (staying > limits.maxProcesses)
      this.#faults.push(`${staying} processes are alive, at most ${limits.maxProcesses} may be`);
  }

  /** Holds after every step. */
  #check(): void {
    const { limits, parking, network, sightings } = this.#world;
    if (parking.size > limits.maxParked) this.#faults.push(`${parking.size} calls are parked`);
    for (const [nonce, count] of sightings.begun)
      if (count > 1) this.#faults.push(`${nonce} reached the server ${count} times`);
    this.#faults.push(...network.faults.splice(0));
    for (const call of this.#calls) this.#faults.push(...call.faults.splice(0));
  }

  /** What callers were told is true. */
  #checkCalls(): void {
    this.#check();
    const { begun } = this.#world.sightings;
    for (const { plan, ends, isAsked } of this.#calls) {
      const [end] = ends;
      if (end === undefined || end.kind === "left") continue;
      const count = begun.get(plan.nonce) ?? 0;
      if (end.kind === "result" && count !== 1)
        this.#faults.push(`${plan.nonce} has a result and was begun ${count} times`);
      // A modern caller is told of its last round; its earlier ones were requests of their own.
      if (end.kind === "error" && end.delivery === "not_sent" && count > 0 && !isAsked)
        this.#faults.push(`${plan.nonce} was not_sent and reached the server`);
    }
  }

  #note(text: string): void {
    this.#trace.push(`${this.#world.clock.now() - 1_000_000_000} ms: ${text}`);
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
