import { describe, expect, test } from "vitest";
import { createSeal } from "../../../core/src/mcp/seal.ts";
import type { Handshake } from "../../../core/src/mcp/session.ts";
import { createVirtualClock, type VirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { type LiveSession, SessionTable, type SessionTableOptions } from "./session-table.ts";

const handshake: Handshake = {
  revision: "2025-11-25",
  capabilities: { roots: {} },
  clientInfo: { name: "x", version: "1" },
};

type Running = Parameters<LiveSession["running"]["set"]>[1];

interface Fixture {
  readonly table: SessionTable;
  readonly clock: VirtualClock;
  /** Sessions that came to life, in order; one that came back is there twice. */
  readonly enlivened: LiveSession[];
  readonly detached: LiveSession[];
}

function create(options: Partial<SessionTableOptions> = {}): Fixture {
  const clock = createVirtualClock(1_000_000);
  const enlivened: LiveSession[] = [];
  const detached: LiveSession[] = [];
  const table = new SessionTable({
    seal: createSeal({ now: () => clock.now() }),
    clock,
    ttlMs: 86_400_000,
    idleMs: 300_000,
    maxLive: 100,
    onLive: (live) => {
      enlivened.push(live);
      live.detach = () => void detached.push(live);
    },
    forget: () => {},
    ...options,
  });
  return { table, clock, enlivened, detached };
}

describe("a session", () => {
  test("is found by its id, with what the handshake settled", () => {
    const { table } = create();
    const live = table.begin(handshake, "alice");
    expect(table.find(live.token, "alice")).toBe(live);
    expect(live.session.handshake).toEqual(handshake);
  });

  test("that is used again after a long rest is the same, and stays", async () => {
    const { table, clock, enlivened, detached } = create();
    const live = table.begin(handshake, "alice");
    await clock.advance(10 * 300_000);
    expect(table.find(live.token, "alice")).toBe(live);
    expect(table.find(live.token, "alice")).toBe(live);
    expect([table.live.length, enlivened, detached]).toEqual([1, [live], []]);
  });

  test("is not found by another caller, alive or not", async () => {
    const { table, clock } = create();
    const { token } = table.begin(handshake, "alice");
    expect(table.find(token, "bob")).toBe("unknown");
    expect(table.find(token, undefined)).toBe("unknown");
    await clock.advance(600_000);
    expect(table.find(token, "bob")).toBe("unknown");
    expect(table.find(token, "alice")).toBeTypeOf("object");
  });

  test("comes back to life from its id alone, in any table with the same secret", () => {
    const secret = "a secret of more than thirty-two characters";
    const { token } = create({ seal: createSeal({ secret }) }).table.begin(handshake, undefined);
    const found = create({ seal: createSeal({ secret }) }).table.find(token, undefined);
    expect(found).toMatchObject({ session: { handshake } });
    expect(create({ seal: createSeal() }).table.find(token, undefined)).toBe("unknown");
  });

  test("that expired or was deleted is not found", async () => {
    const { table, clock, detached } = create();
    const [expired, deleted] = [table.begin(handshake, undefined), table.begin(handshake, undefined)];
    table.delete(deleted);
    expect(table.find(deleted.token, undefined)).toBe("unknown");
    expect(detached).toEqual([deleted]);
    await clock.advance(86_400_001);
    expect(table.find("another", undefined)).toBe("unknown"); // Whoever asks first sweeps.
    expect(table.find(expired.token, undefined)).toBe("unknown");
  });

  test.each(["", "v1.", "v1.AAAA", "x".repeat(5000)])("is not found by %j", (token) => {
    expect(create().table.find(token, undefined)).toBe("unknown");
  });
});

describe("memory", () => {
  test("holds at most as many sessions as it may, and drops those idle longest", async () => {
    const { table, clock, detached } = create({ maxLive: 10 });
    const lives: LiveSession[] = [];
    for (let index = 0; index < 25; index++) {
      lives.push(table.begin(handshake, undefined));
      await clock.advance(1);
      expect(table.live.length).toBeLessThanOrEqual(10);
    }
    expect(detached).toEqual(lives.slice(0, 17));
  });

  test("does not drop a session that is busy, and refuses new ones when all are", () => {
    const { table } = create({ maxLive: 2 });
    const busy = [table.begin(handshake, undefined), table.begin(handshake, undefined)];
    const call = { abort: () => {} } as Running;
    for (const live of busy) live.running.set("1" as never, call);
    expect(() => table.begin(handshake, undefined)).toThrow("too many sessions");
    for (const live of busy) expect(table.find(live.token, undefined)).toBe(live);
  });

  test("takes no session from others for a caller that has most of them, all in use", () => {
    const { table, detached } = create({ maxLive: 20 });
    const others = ["a", "b", "c"].map((caller) => table.begin(handshake, caller));
    const call = { abort: () => {} } as Running;
    const keepBusy = (): void => {
      for (let count = 0; count < 30; count++)
        table.begin(handshake, "greedy").running.set("1" as never, call);
    };
    expect(keepBusy).toThrow("sessions");
    expect(detached).toEqual([]);
    for (const live of others) expect(table.find(live.token, live.caller)).toBe(live);
  });

  test("drops what was not used for a while, when somebody asks", async () => {
    const { table, clock } = create();
    const old = table.begin(handshake, undefined);
    await clock.advance(200_000);
    const young = table.begin(handshake, undefined);
    await clock.advance(200_000);
    table.find(young.token, undefined);
    expect(table.live.length).toBe(1);
    expect(table.find(old.token, undefined)).not.toBe(old);
  });

  test("remembers so many deleted ids, and forgets the oldest beyond that", () => {
    const { table } = create({ maxDeleted: 100 });
    const tokens: string[] = [];
    for (let index = 0; index <= 100; index++) {
      const live = table.begin(handshake, undefined);
      tokens.push(live.token);
      table.delete(live);
    }
    expect(table.find(tokens[1]!, undefined)).toBe("unknown");
    expect(table.find(tokens.at(-1)!, undefined)).toBe("unknown");
    expect(table.find(tokens[0]!, undefined)).toBeTypeOf("object");
  });

  test("is empty when the table is closed, and what ran is aborted", () => {
    const { table, detached } = create();
    const live = table.begin(handshake, undefined);
    const aborted: unknown[] = [];
    live.running.set("1" as never, { abort: (reason) => void aborted.push(reason) });
    table.close();
    expect([table.live.length, detached.length, aborted.length]).toEqual([0, 1, 1]);
  });
});
