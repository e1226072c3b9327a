import { describe, expect, test } from "vitest";
import { createFakeOpener, turn } from "../../../../test/support/fake-client.ts";
import { createMadeConnection, gone, never, settle } from "../../../../test/support/made-connection.ts";
import { UpstreamError } from "../../../core/src/errors/index.ts";

describe("resting", () => {
  test("it ends, and is started again when it is needed", async () => {
    const made = createMadeConnection();
    await made.up();
    await made.connection.rest();
    expect(made.connection.health).toEqual({ kind: "idle" });
    expect(made.alive).toBe(0);
    const waiting = made.connection.whenUp(never);
    await turn();
    made.last.succeed();
    expect(await settle(waiting)).toBe("up");
    made.last.lose(gone);
    await made.clock.advance(1000);
    expect(made.openings).toHaveLength(3);
  });

  test("it ends while it waits to be started again", async () => {
    const made = createMadeConnection();
    await made.up();
    made.last.lose(gone);
    await turn();
    await made.connection.rest();
    await made.clock.advance(120_000);
    expect(made.openings).toHaveLength(1);
    expect(made.connection.health.kind).toBe("idle");
    expect(made.clock.sleeping).toBe(0);
  });

  test("it ends while it is being started", async () => {
    const made = createMadeConnection();
    made.connection.start();
    await turn();
    const resting = made.connection.rest();
    if (!made.last.isSettled) made.last.succeed();
    await resting;
    expect(made.connection.health).toEqual({ kind: "idle" });
    expect(made.alive).toBe(0);
  });

  test("a call that needs it while it ends gets the next one", async () => {
    const made = createMadeConnection();
    await made.up();
    const resting = made.connection.rest();
    const waiting = made.connection.whenUp(never);
    await resting;
    await made.clock.advance(1);
    expect(made.openings).toHaveLength(2);
    made.last.succeed();
    expect(await settle(waiting)).toBe("up");
  });

  test("a server that lasted and rested may take its time to start, whatever happened before", async () => {
    const made = createMadeConnection();
    await made.up();
    made.last.lose(gone);
    await made.clock.advance(1000);
    made.last.succeed();
    await made.clock.advance(20_000);
    await made.connection.rest();
    const waiting = made.connection.whenUp(never);
    await made.clock.advance(5000);
    expect(await settle(waiting)).toBe("waiting");
    made.last.succeed();
    expect(await settle(waiting)).toBe("up");
  });

  test("resting what does not run does nothing", async () => {
    const made = createMadeConnection();
    await made.connection.rest();
    expect(made.openings).toHaveLength(0);
    await made.up();
    expect(made.connection.health.kind).toBe("up");
  });
});

describe("disposing", () => {
  test("during a start gives it up, and fails the calls that wait", async () => {
    const made = createMadeConnection();
    const waiting = made.connection.whenUp(never);
    await turn();
    await made.connection[Symbol.asyncDispose]();
    expect(await settle(waiting)).toMatchObject({
      code: "upstream.unavailable",
      message: expect.stringContaining(
        "it was stopped or removed, or the gateway is shutting down",
      ) as string,
    });
    expect(made.alive).toBe(0);
    expect(made.healths).toEqual(["starting", "stopped"]);
    expect(made.clock.sleeping).toBe(0);
  });

  test("during a start that ignores it closes what was opened, and never reports it as up", async () => {
    const opener = createFakeOpener();
    const deaf = new AbortController().signal;
    const made = createMadeConnection({ open: (life) => opener.open({ ...life, signal: deaf }) });
    made.connection.start();
    await turn();
    const disposing = made.connection[Symbol.asyncDispose]();
    opener.last.succeed();
    await disposing;
    expect(opener.alive).toBe(0);
    expect(made.healths).toEqual(["starting", "stopped"]);
  });

  test("while it waits to start again leaves no timer, and starts nothing", async () => {
    const made = createMadeConnection();
    await made.up();
    made.last.lose(gone);
    await turn();
    await made.connection[Symbol.asyncDispose]();
    expect(made.clock.sleeping).toBe(0);
    await made.clock.advance(120_000);
    expect(made.openings).toHaveLength(1);
  });

  test("resolves when everything is closed, also what was lost before", async () => {
    const made = createMadeConnection();
    made.connection.start();
    await turn();
    let close = (): void => {};
    made.last.succeed({ close: () => new Promise((resolve) => (close = resolve)) });
    await turn();
    made.last.lose(gone);
    await turn();
    let isDisposed = false;
    const disposing = made.connection[Symbol.asyncDispose]().then(() => (isDisposed = true));
    await turn();
    expect(isDisposed).toBe(false);
    close();
    await disposing;
    expect(made.alive).toBe(0);
  });

  test("a client that cannot be closed properly is not a reason to fail", async () => {
    const made = createMadeConnection();
    made.connection.start();
    await turn();
    made.last.succeed({ close: () => Promise.reject(new Error("EPIPE")) });
    await turn();
    await expect(made.connection[Symbol.asyncDispose]()).resolves.toBeUndefined();
  });

  test("twice is the same as once, and nothing starts afterwards", async () => {
    const made = createMadeConnection();
    await made.up();
    await Promise.all([made.connection[Symbol.asyncDispose](), made.connection[Symbol.asyncDispose]()]);
    made.connection.start();
    expect(await settle(made.connection.whenUp(never))).toBeInstanceOf(UpstreamError);
    await made.connection.rest();
    expect(made.openings).toHaveLength(1);
    expect(made.connection.health.kind).toBe("stopped");
  });
});

test("a call that comes while a server is being stopped fails with that reason", async () => {
  const made = createMadeConnection();
  await made.up();
  const stopping = made.connection[Symbol.asyncDispose]();
  await expect(made.connection.whenUp(never)).rejects.toThrow("the gateway is shutting down");
  await stopping;
});
