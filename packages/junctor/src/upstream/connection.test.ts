import { describe, expect, test } from "vitest";
import { legacyAgreement, turn } from "../../../../test/support/fake-client.ts";
import {
  createMadeConnection,
  gone,
  type MadeConnection,
  never,
  settle,
} from "../../../../test/support/made-connection.ts";
import {
  ClosedError,
  ConnectError,
  HttpError,
  RpcError,
  TimeoutError,
  UpstreamError,
} from "../../../core/src/errors/index.ts";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import { StartGate } from "./starts.ts";

describe("starting", () => {
  test("however many need it, it is started once", async () => {
    const made = createMadeConnection();
    const all = Array.from({ length: 20 }, () => made.connection.whenUp(new AbortController().signal));
    made.connection.start();
    await turn();
    expect(made.openings).toHaveLength(1);
    const { client } = made.last.succeed();
    await expect(Promise.all(all)).resolves.toEqual(Array.from({ length: 20 }, () => client));
    expect(made.healths).toEqual(["starting", "up"]);
    expect(made.clock.sleeping).toBe(0);
  });

  test("its health has what was agreed on and how long it took", async () => {
    const made = createMadeConnection();
    made.connection.start();
    await made.clock.advance(700);
    made.last.succeed();
    await turn();
    expect(made.connection.health).toEqual({
      kind: "up",
      since: 1_000_700,
      agreement: legacyAgreement,
      connectMs: 700,
    });
  });

  test("a call waits for the first start as long as that may take", async () => {
    const made = createMadeConnection();
    const waiting = made.connection.whenUp(never);
    await made.clock.advance(29_999);
    expect(await settle(waiting)).toBe("waiting");
    await made.clock.advance(1);
    expect(await settle(waiting)).toMatchObject({
      code: "upstream.unavailable",
      server: "files",
      delivery: "not_sent",
      message: "files is not available, and the call was not sent: it is still starting, since 30 s.",
    });
    expect(made.clock.sleeping).toBe(0);
  });

  test("a start that fails fails all waiting calls at once", async () => {
    const made = createMadeConnection();
    const all = [made.connection.whenUp(never), made.connection.whenUp(never)];
    await turn();
    made.last.fail(new ConnectError("cmd", "it exited with code 1", { stderr: "password=hunter2" }));
    for (const waiting of all) {
      const error = await settle(waiting);
      expect(error).toBeInstanceOf(UpstreamError);
      expect((error as Error).message).toContain("it exited with code 1; it is tried again in 1 s");
      expect((error as Error).message).not.toContain("hunter2");
    }
  });

  test("a server over HTTP that a call needs is tried again soon, however long it was away", async () => {
    const made = createMadeConnection({ hurryMs: 1500 });
    made.connection.start();
    for (let failures = 1; failures <= 6; failures++) {
      await made.clock.advance(64_000);
      expect(made.openings).toHaveLength(failures);
      made.last.fail(gone);
      await turn();
    }
    // The next attempt is 32 s away.
    await made.clock.advance(1000);
    const waiting = made.connection.whenUp(never);
    await made.clock.advance(500);
    expect(made.openings).toHaveLength(7);
    made.last.succeed();
    expect(await settle(waiting)).toBe("up");
    expect(made.clock.sleeping).toBe(0);
  });

  test("calls to a server over HTTP that stays away do not try it more often", async () => {
    const made = createMadeConnection({
      hurryMs: 1500,
      gate: new StartGate({ clock: createVirtualClock(), maxStarts: 240 }),
    });
    made.connection.start();
    await turn();
    made.last.fail(gone);
    for (let ms = 0; ms < 15_000; ms += 100) {
      void made.connection.whenUp(never).catch(() => {});
      await made.clock.advance(100);
      if (made.connection.health.kind === "starting") made.last.fail(gone);
    }
    expect(made.openings.length).toBeLessThanOrEqual(12);
    expect(made.openings.length).toBeGreaterThanOrEqual(9);
  });

  test("a caller that gives up waiting leaves nothing behind", async () => {
    const made = createMadeConnection();
    const controller = new AbortController();
    const waiting = made.connection.whenUp(controller.signal);
    await turn();
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    expect(made.clock.sleeping).toBe(0);
    await expect(made.connection.whenUp(controller.signal)).rejects.toThrow("enough");
    expect(made.clock.sleeping).toBe(0);
  });

  test("a server that is lost before it is fully up has failed, and is started again", async () => {
    const made = createMadeConnection();
    const waiting = made.connection.whenUp(never);
    await turn();
    const fake = made.last.succeed({ agreement: () => Promise.reject(gone) });
    expect(await settle(waiting)).toBeInstanceOf(UpstreamError);
    expect(made.connection.health.kind).toBe("down");
    expect(fake.isClosed).toBe(true);
    await made.clock.advance(1000);
    expect(made.openings).toHaveLength(2);
  });
});

describe("when it is lost", () => {
  test("it is started again after a while, and calls that come meanwhile wait for it", async () => {
    const made = createMadeConnection();
    await made.up();
    made.last.lose(gone);
    await turn();
    expect(made.connection.client).toBeUndefined();
    expect(made.connection.health).toMatchObject({ kind: "down", reason: "it ended", isBroken: false });
    const waiting = made.connection.whenUp(never);
    await made.clock.advance(1000);
    expect(made.openings).toHaveLength(2);
    const { client } = made.last.succeed();
    await expect(waiting).resolves.toBe(client);
    expect(made.openings[0]?.fake?.isClosed).toBe(true);
    expect(made.clock.sleeping).toBe(0);
  });

  test("a call fails at once when the next start is further away than it would wait", async () => {
    const made = createMadeConnection();
    await made.up();
    for (let losses = 0; losses < 3; losses++) {
      made.last.lose(gone);
      await made.clock.advance(1000 * 2 ** losses);
      if (losses < 2) made.last.succeed();
      await turn();
    }
    made.last.fail(gone);
    await turn();
    const error = await settle(made.connection.whenUp(never));
    expect((error as Error).message).toContain("it is tried again in 8 s");
    expect(made.clock.sleeping).toBe(1);
  });

  test("one that was up for a while is started again at once", async () => {
    const made = createMadeConnection();
    await made.up();
    made.last.lose(gone);
    await made.clock.advance(1000);
    made.last.succeed();
    await made.clock.advance(10_000);
    made.last.lose(gone);
    await made.clock.advance(0);
    expect(made.resets()).toBe(1);
    expect(made.openings).toHaveLength(3);
  });

  test("one that is up for a moment each time waits longer each time", async () => {
    const made = createMadeConnection();
    await made.up();
    const starts: number[] = [];
    for (let life = 0; life < 4; life++) {
      made.last.lose(gone);
      const before = made.openings.length;
      while (made.openings.length === before) await made.clock.advance(500);
      starts.push(made.clock.now() - 1_000_000);
      made.last.succeed();
      await turn();
    }
    expect(starts).toEqual([1000, 3000, 7000, 15_000]);
    expect(made.resets()).toBe(0);
  });

  test("one that cannot stay up is started six times in the first minute, and says so", async () => {
    const made = createMadeConnection({ backoff: { next: () => 10, reset: () => {} } });
    made.connection.start();
    await turn();
    for (let ms = 0; ms < 1000; ms += 10) {
      if (!made.last.isSettled) made.last.fail(gone);
      await made.clock.advance(10);
    }
    expect(made.connection.health).toMatchObject({ kind: "down", isBroken: true });
    const error = await settle(made.connection.whenUp(never));
    expect((error as Error).message).toContain(
      "it ended; it failed too often, and it is tried again in 59 s",
    );
    await made.clock.advance(58_999);
    expect(made.openings).toHaveLength(6);
    await made.clock.advance(1);
    expect(made.openings).toHaveLength(7);
    await made.connection[Symbol.asyncDispose]();
  });

  test("one that was given up because of a further process in one start says why the earlier ones failed", async () => {
    const failure = new ConnectError("cmd", "it exited with code 1", { kind: "exited", stderr: "expired" });
    const made = createMadeConnection({
      backoff: { next: () => 10, reset: () => {} },
      // A legacy server that dies of the first probe is started a second time within one start.
      open: ({ onOpen }) => {
        onOpen();
        onOpen();
        onOpen();
        onOpen();
        return Promise.reject(failure);
      },
    });
    made.connection.start();
    for (let ms = 0; ms < 100; ms += 10) await made.clock.advance(10);
    expect(made.connection.health).toMatchObject({
      kind: "down",
      isBroken: true,
      code: "exited",
      reason: "it exited with code 1",
      said: "expired",
    });
    await made.connection[Symbol.asyncDispose]();
  });

  test("a timer that is a little early is not a reason not to start", async () => {
    const clock = createVirtualClock(1_000_000);
    const early = {
      ...clock,
      timer: (ms: number, fire: () => void) => clock.timer(ms > 10 ? ms - 1 : ms, fire),
    };
    const made = createMadeConnection({
      clock: early,
      gate: new StartGate({ clock: early, maxStarts: 1, windowMs: 1000 }),
      backoff: { next: () => 10, reset: () => {} },
    });
    made.connection.start();
    await turn();
    made.last.fail(gone);
    await clock.advance(1001);
    expect(made.openings).toHaveLength(2);
    expect(made.connection.health.kind).toBe("starting");
    await made.connection[Symbol.asyncDispose]();
  });

  test("one that is not kept alive is started again when it is needed, and not before", async () => {
    const made = createMadeConnection({ keepsAlive: false });
    await made.up();
    made.last.lose(gone);
    await made.clock.advance(60_000);
    expect(made.openings).toHaveLength(1);
    const waiting = made.connection.whenUp(never);
    await turn();
    expect(made.openings).toHaveLength(2);
    made.last.succeed();
    expect(await settle(waiting)).toBe("up");
  });

  test("a call that tries again the moment it failed gets the next client", async () => {
    const made = createMadeConnection({ keepsAlive: false });
    const again = made.connection.whenUp(never).catch(() => made.connection.whenUp(never));
    await turn();
    made.last.fail(gone);
    await made.clock.advance(1000);
    expect(made.openings).toHaveLength(2);
    made.last.succeed();
    expect(await settle(again)).toBe("up");
  });
});

describe("in doubt", () => {
  async function probed(ping: () => Promise<unknown>): Promise<MadeConnection> {
    const made = createMadeConnection();
    made.connection.start();
    await turn();
    made.last.succeed({ ping });
    await turn();
    made.connection.doubt();
    made.connection.doubt();
    await turn();
    expect(made.last.fake?.asked.ping ?? made.openings[0]?.fake?.asked.ping).toBe(1);
    return made;
  }

  test("a server that answers is kept", async () => {
    const made = await probed(() => Promise.resolve({}));
    expect(made.connection.health.kind).toBe("up");
    made.connection.doubt();
    await turn();
    expect(made.last.fake?.asked.ping).toBe(2);
  });

  test("a server that answers that it knows no ping is kept", async () => {
    const made = await probed(() => Promise.reject(new RpcError("rpc.method_not_found", "no")));
    expect(made.connection.health.kind).toBe("up");
  });

  test.each([
    ["whose way is closed", new ClosedError("outcome_unknown", "reset")],
    ["that cannot be reached", new ConnectError("http://127.0.0.1:9", "refused")],
    ["behind a proxy that does not find it", new HttpError(502, "http://127.0.0.1:9/mcp", "")],
  ])("a server %s is given up and started again", async (_, error) => {
    const made = await probed(() => Promise.reject(error));
    expect(made.connection.health.kind).toBe("down");
    expect(made.last.fake?.isClosed).toBe(true);
  });

  test("a server that is too busy to answer is kept: what it works on would be lost", async () => {
    const made = await probed(() => Promise.reject(new TimeoutError("total", 5000)));
    expect(made.connection.health.kind).toBe("up");
    expect(made.last.fake?.isClosed).toBe(false);
  });

  test("a late answer about one client says nothing of the next", async () => {
    const made = createMadeConnection();
    made.connection.start();
    await turn();
    let fail: (error: Error) => void = () => {};
    made.last.succeed({ ping: () => new Promise((_, reject) => (fail = reject)) });
    await turn();
    made.connection.doubt();
    made.last.lose(gone);
    await made.clock.advance(1000);
    made.last.succeed();
    await turn();
    fail(gone);
    await turn();
    expect(made.connection.health.kind).toBe("up");
  });

  test("one that is not up is not asked", () => {
    const made = createMadeConnection();
    made.connection.doubt();
    expect(made.openings).toHaveLength(0);
  });
});
