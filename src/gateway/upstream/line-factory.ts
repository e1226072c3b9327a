import type { Clock } from "../../async/clock.ts";
import type { Client } from "../../client/client.ts";
import type { ConnectOptions } from "../../client/connect.ts";
import type { StartProgress } from "../../mcp/link.ts";
import type { ClientCapabilities } from "../../mcp/types.ts";
import type { ServerConfig } from "../config/config.ts";
import { Line, type LineOptions } from "./line.ts";
import { StartGate } from "./start-gate.ts";
import type { StartSlots } from "./start-slots.ts";

/** Makes a line to one server on which `relays` is declared. */
export type CreateLine = (
  relays: ClientCapabilities,
  own: Pick<LineOptions, "keepsAlive" | "onUp" | "onHealth">,
) => Line;

export interface LineFactoryOptions {
  readonly config: ServerConfig;
  readonly connect: (options: ConnectOptions) => Promise<Client>;
  readonly clock: Clock;
  /** Limits how many processes start at the same time, for all servers. */
  readonly slots?: StartSlots | undefined;
  /** Told when the server asks something in the middle of a call. */
  readonly onAsked: () => void;
}

/** How long a call waits for a server that is being started again. */
const patienceMs = 2000;

/** Most processes of a server in a minute that do not last, whoever they are for. */
const maxShortLives = 12;

/** A server that did not answer in time gets up to so many times as much when it is started again. */
const maxTimeoutFactor = 8;

/** What all lines to a server have in common. */
export function createLineFactory(options: LineFactoryOptions): CreateLine {
  const { config, connect, clock, onAsked } = options;
  // Lines come and go with sessions and calls, and with them their own gates. Those over HTTP start no process.
  const isProcess = config.launch.kind === "command";
  const common = isProcess ? new StartGate({ clock, maxStarts: maxShortLives }) : undefined;
  const slots = isProcess ? options.slots : undefined;
  return (relays, own) =>
    new Line({
      ...own,
      server: config.name,
      clock,
      gate: new StartGate({ clock }),
      common,
      patienceMs,
      startPatienceMs: config.startTimeoutMs,
      open: async ({ signal, isUrgent, timeouts, onLost, onOpen }) => {
        let progress: (() => StartProgress) | undefined;
        const giveBack = await slots?.take({ isUrgent, signal, processorMs: () => progress?.().processorMs });
        try {
          return await connect({
            relays,
            reconnects: false,
            validate: false,
            timeoutMs: config.timeoutMs,
            maxTotalMs: config.maxTotalMs,
            connectTimeoutMs: config.startTimeoutMs * Math.min(2 ** timeouts, maxTimeoutFactor),
            maxStartMs: config.maxStartMs,
            clock,
            onAsked,
            onLost,
            onOpen,
            onSpawned: (busy) => {
              progress = busy;
            },
            signal,
          });
        } finally {
          giveBack?.();
        }
      },
    });
}

/** The capabilities a key of `toRelayable` stands for. */
export function toCapabilities(key: string): ClientCapabilities {
  return key === "" ? {} : (JSON.parse(key) as ClientCapabilities);
}
