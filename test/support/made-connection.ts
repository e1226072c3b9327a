import type { Client } from "../../packages/client/src/client/client.ts";
import type { Backoff } from "../../packages/core/src/async/pacing.ts";
import { ClosedError, type UpstreamError } from "../../packages/core/src/errors/index.ts";
import { createVirtualClock, type VirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import {
  Connection,
  type ConnectionOptions,
  type Health,
} from "../../packages/junctor/src/upstream/connection.ts";
import { StartGate } from "../../packages/junctor/src/upstream/starts.ts";
import { createFakeOpener, type FakeOpener, turn } from "./fake-client.ts";

/** A connection to a fake server, under a virtual clock. */
export interface MadeConnection extends FakeOpener {
  readonly connection: Connection;
  readonly clock: VirtualClock;
  readonly healths: Health["kind"][];
  /** How often the backoff was told that all is well. */
  readonly resets: () => number;
  /** Starts a server that comes up at once. */
  readonly up: () => Promise<void>;
}

export const gone: ClosedError = new ClosedError("outcome_unknown", "it is gone");
export const never: AbortSignal = new AbortController().signal;

export function createMadeConnection(options: Partial<ConnectionOptions> = {}): MadeConnection {
  const clock = createVirtualClock(1_000_000);
  const opener = createFakeOpener();
  const healths: Health["kind"][] = [];
  let resets = 0;
  let step = 0;
  const backoff: Backoff = {
    next: () => 1000 * 2 ** step++,
    reset: () => {
      step = 0;
      resets++;
    },
  };
  const connection = new Connection({
    server: "files",
    open: opener.open,
    clock,
    gate: new StartGate({ clock }),
    backoff,
    keepsAlive: true,
    patienceMs: 2000,
    startPatienceMs: () => 30_000,
    report: ({ kind }) => healths.push(kind),
    ...options,
  });
  const up = async (): Promise<void> => {
    connection.start();
    await turn();
    opener.last.succeed();
    await turn();
  };
  return Object.defineProperties(
    { connection, clock, healths, resets: () => resets, up },
    Object.getOwnPropertyDescriptors(opener),
  ) as MadeConnection;
}

/** Whether a client came, failed, or is still waited for. */
export async function settle(client: Promise<Client>): Promise<UpstreamError | "up" | "waiting"> {
  const outcome = client.then(
    () => "up" as const,
    (error: unknown) => error as UpstreamError,
  );
  return Promise.race([outcome, turn().then(() => "waiting" as const)]);
}
