import { expect, test } from "vitest";
import { FakePipe } from "../../../../../test/support/fake-pipe.ts";
import { ConnectError, TimeoutError } from "../../../../core/src/errors/index.ts";
import { createRegistry } from "../../../../server/src/registry/registry.ts";
import { createServer } from "../../../../server/src/wire/server.ts";
import type { Interruption } from "../terminal/interrupt.ts";
import type { Destination } from "./destination.ts";
import { withClient } from "./with-client.ts";

const interruption: Interruption = {
  signal: new AbortController().signal,
  interrupt: () => {},
  [Symbol.dispose]: () => {},
};

/** A destination whose time is over when the test says so. */
function until(target: Destination["target"], signal: AbortSignal): Destination {
  const deadline = { timeoutMs: 60_000, signal, [Symbol.dispose]: () => {} };
  return { target, headers: {}, deadline, [Symbol.asyncDispose]: async () => {} };
}

test("when the time is over before the server answered, it did not answer in time", async () => {
  const over = new AbortController();
  const pipe = new FakePipe(() => {
    over.abort();
    return undefined;
  });
  const failed = withClient(until(pipe.target, over.signal), interruption, {}, async () => {});
  await expect(failed).rejects.toBeInstanceOf(ConnectError);
  await expect(failed).rejects.toMatchObject({
    kind: "no_answer",
    reason: "it did not answer within 60000 ms",
  });
});

test("when the time is over during a call, the call is cancelled and the limit is named", async () => {
  const over = new AbortController();
  const registry = createRegistry();
  const ended = new Promise<void>((resolve) => {
    registry.register("wait", {}, (_args, { signal }) => {
      signal.addEventListener("abort", () => resolve());
      over.abort();
      return new Promise<string>(() => {});
    });
  });
  const server = createServer(registry, { name: "test", version: "1.0.0" });
  const failed = withClient(until({ server }, over.signal), interruption, {}, (client, signal) =>
    client.callTool("wait", {}, { signal }),
  );
  await expect(failed).rejects.toBeInstanceOf(TimeoutError);
  await expect(failed).rejects.toMatchObject({ kind: "total", timeoutMs: 60_000 });
  await ended;
});
