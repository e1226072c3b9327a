import type { Client, ConnectOptions } from "@junctor/client";
import type { QuestionHabits } from "@junctor/client/internal";
import { createBackoff, type Clock } from "@junctor/core/async";
import type { StartProgress } from "@junctor/core/mcp";
import type { ServerConfig } from "../config/index.ts";
import type { Audience } from "./audience.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import type { DescribeFailure } from "./health.ts";
import { StartGate } from "./start-gate.ts";
import type { StartSlots } from "./start-slots.ts";
import type { Hide } from "./to-upstream-error.ts";

/** Makes a connection to one server for an audience. */
export type CreateConnection = (
  audience: Audience,
  own: Pick<ConnectionOptions, "keepsAlive" | "onUp" | "onHealth" | "onClient">,
) => Connection;

interface ConnectionFactoryOptions {
  readonly config: ServerConfig;
  readonly connect: (options: ConnectOptions) => Promise<Client>;
  readonly clock: Clock;
  /** Limits how many processes start at the same time, for all servers. */
  readonly slots?: StartSlots | undefined;
  /** Takes the secrets of the config out of messages to callers. */
  readonly hide?: Hide | undefined;
  /** How callers are told of a failure; by its reason alone. */
  readonly describeFailure?: DescribeFailure | undefined;
  /** Whether the server may run in another process of the gateway, which comes and goes for reasons of its own. */
  readonly isPlaced?: boolean | undefined;
  /** What earlier connections to the server learnt of its questions. */
  readonly habits: QuestionHabits;
}

/** How long a call waits for a server that is being started again. */
const patienceMs = 2000;

/** Most processes of a server in a minute that do not last, for all audiences together. */
const maxShortLives = 12;

/** A server over HTTP that a caller needs is tried again so soon after it failed: to connect costs little. */
const hurryMs = 1500;

/** Most attempts to reach a server over HTTP in a minute, those of each transport counted. */
const maxHttpStarts = 240;

/** The longest back-off for a server that may run elsewhere. How often it is started here is limited by its gate. */
const maxPlacedMs = 2000;

/** A server that did not answer in time gets up to so many times as much when it is started again. */
const maxTimeoutFactor = 8;

/** All connections to a server have these things in common. */
export function createConnectionFactory(options: ConnectionFactoryOptions): CreateConnection {
  const { config, connect, clock, habits } = options;
  // Lines come and go with sessions and calls, and with them their own gates. Those over HTTP start no process.
  const isProcess = config.launch.kind === "command";
  const common = isProcess ? new StartGate({ clock, maxStarts: maxShortLives }) : undefined;
  const slots = isProcess ? options.slots : undefined;
  const opened = Object.keys(config.extensions);
  const resultTypes = Object.values(config.extensions).flatMap((extension) => extension.resultTypes);
  return ({ declares: { capabilities }, extensions: { extensions }, era }, own) =>
    new Connection({
      ...own,
      server: config.name,
      hide: options.hide,
      describeFailure: options.describeFailure,
      clock,
      gate: isProcess ? new StartGate({ clock }) : new StartGate({ clock, maxStarts: maxHttpStarts }),
      hurryMs: isProcess ? undefined : hurryMs,
      ...(options.isPlaced === true ? { backoff: createBackoff({ minMs: 500, maxMs: maxPlacedMs }) } : {}),
      common,
      patienceMs,
      startPatienceMs: config.startTimeoutMs,
      open: async ({ signal, isUrgent, timeouts, onQueued, onLost, onOpen }) => {
        let progress: (() => StartProgress) | undefined;
        const isQueued = slots?.isFull === true;
        if (isQueued) onQueued(true);
        const giveBack = await slots?.take({ isUrgent, signal, processorMs: () => progress?.().processorMs });
        if (isQueued) onQueued(false);
        try {
          return await connect({
            relays: {
              capabilities,
              extensions,
              opened,
              resultTypes,
              server: config.name,
              habits,
              answerWithinMs: config.answerWithinMs,
            },
            ...(era === "legacy" ? { era } : {}),
            reconnects: false,
            validate: false,
            timeoutMs: config.timeoutMs,
            maxTotalMs: config.maxTotalMs,
            connectTimeoutMs: config.startTimeoutMs * Math.min(2 ** timeouts, maxTimeoutFactor),
            maxStartMs: config.maxStartMs,
            clock,
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
