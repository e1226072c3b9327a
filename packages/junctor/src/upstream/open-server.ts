import { type Authorizer, type Client, connect, type ConnectOptions, type Guardian } from "@junctor/client";
import type { CredentialEvent, QuestionHabits } from "@junctor/client/internal";
import { type Clock, createBackoff, systemClock, Repeats } from "@junctor/core/async";
import { packageVersion } from "@junctor/core/options";
import { type GatewayConfig, isSource, type ServerConfig, mayWantOAuth, toTarget } from "../config/index.ts";
import { createServerAuthorizer, type Logins, sharedOwner } from "../credentials/index.ts";
import { junctor } from "../invocation/index.ts";
import { type GatewayLog, type ServerWords, createStderrLog } from "../log/index.ts";
import { openSource } from "../sources/index.ts";
import type { CallerGroup } from "./caller-groups.ts";
import { Connection, type ConnectionOptions, type DescribeFailure } from "./connection.ts";
import type { Hide } from "./failure.ts";
import { StartGate, type StartSlots } from "./starts.ts";

interface OpenServerOptions {
  readonly log: GatewayLog;
  readonly clock?: Clock;
  /** Ends the processes we started, also when we are killed. */
  readonly guardian: Guardian | undefined;
  /** Keeps what its process writes besides messages. */
  readonly words: ServerWords;
  /** The credentials of servers that want OAuth. */
  readonly logins: Logins;
  /** Drafts of the protocol that the config tries. */
  readonly drafts?: GatewayConfig["drafts"] | undefined;
  /** Gives requests the token of one caller, in place of the one that all callers use. */
  readonly authorizer?: Authorizer | undefined;
  /** Called for each event of a credential. */
  readonly onCredential?: ((server: string, event: CredentialEvent) => void) | undefined;
}

/** Makes a function that connects to a server as its config says. The server's output and warnings go to the log, under its name. */
export function createOpenServer(
  config: ServerConfig,
  given: OpenServerOptions,
): (options: ConnectOptions) => Promise<Client> {
  const { log, clock = systemClock, guardian, words, logins, drafts = [], authorizer, onCredential } = given;
  const { name, launch, sandbox, oauth } = config;
  // Shared by all connections: when the server dies, the streams of all break, again and again.
  const warnings = new Repeats({ clock });
  const warnStill = (text: string, facts: object = {}): void => {
    const cause = toCause(text);
    const isNew = warnings.isNew(cause);
    const times = warnings.note(cause);
    if (times === undefined) log.debug({ server: name, ...facts }, text);
    else log[isNew ? "warn" : "info"]({ server: name, ...facts, ...(times === 1 ? {} : { times }) }, text);
  };
  const shared = {
    clientInfo: { name: "junctor", version: packageVersion },
    onWarning: (text: string) => warnStill(text),
    groups: drafts.includes("groups"),
    // The gateway logs these once for each server, not once for each connection.
    onListFault: () => {},
    onLog: ({ level, data }: { readonly level: string; readonly data: unknown }) =>
      log.debug({ server: name, level, data }, "log message of a server"),
  };
  if (launch.kind === "http") {
    const { url, headers, transport } = launch;
    const server = new URL(url);
    const advice = junctor(`login ${name}`);
    const onEvent = (event: CredentialEvent): void => {
      logCredential(log, name, event);
      onCredential?.(name, event);
    };
    const authorization = mayWantOAuth(launch)
      ? {
          authorization:
            authorizer ??
            createServerAuthorizer({ server, oauth, owner: sharedOwner, logins, advice, clock, onEvent }),
        }
      : {};
    return (options) => connect(server, { ...shared, headers, transport, ...authorization, ...options });
  }
  if (isSource(launch)) {
    const onError = (error: unknown, tool: string): void =>
      log.warn({ server: name, tool, error: String(error) }, "a tool failed");
    return async (options) => {
      const server = await openSource(
        { name, launch, sandbox },
        { guardian, clock, onWarning: warnStill, onError },
      );
      return connect({ server }, { ...shared, ...options });
    };
  }
  const target = toTarget(launch, sandbox);
  const onStray = (line: string): void => {
    words.hearStray(line);
    const text = `${name} writes other text than MCP messages to its standard output`;
    warnStill(text, { stdout: line });
  };
  const own = { ...shared, onStray, ...(guardian === undefined ? {} : { guardian }) };
  return (options) => {
    words.begin();
    // Each process has a log of its own, or the lines of two would mix.
    const toLog = createStderrLog(name, log, clock);
    const onStderr = (chunk: Uint8Array): void => {
      words.hearStderr(chunk);
      toLog(chunk);
    };
    const onSpawned: ConnectOptions["onSpawned"] = (progress) => {
      words.watch(progress);
      options.onSpawned?.(progress);
    };
    return connect(target, { ...own, onStderr, ...options, onSpawned });
  };
}

/** What a warning is about, the same for messages that differ in their details. What is left out of a list is a detail that counts. */
function toCause(text: string): string {
  return text.startsWith("Left out") ? text : (text.split(": ", 1)[0] ?? text).replaceAll(/\d+/g, "0");
}

/** Logs an event of a credential. */
export function logCredential(log: GatewayLog, server: string, { kind, ...facts }: CredentialEvent): void {
  const texts = {
    login: "signed in",
    refresh: "token renewed",
    refresh_failed: "token not renewed",
    connect_started: "a caller begins to connect its account",
    connect_done: "a caller connected its account",
    connect_refused: "an account was not connected",
  } as const;
  if (kind === "refresh_failed" || kind === "connect_refused") log.warn({ server, ...facts }, texts[kind]);
  else log.info({ server, ...facts }, texts[kind]);
}

/** Makes a connection to one server for a group of callers. */
export type CreateConnection = (
  group: CallerGroup,
  own: Pick<ConnectionOptions, "keepsAlive" | "report">,
) => Connection;

interface ConnectionFactoryOptions {
  readonly config: ServerConfig;
  /** The config at the moment: times may change while the server runs. */
  readonly configNow: () => ServerConfig;
  readonly connect: (options: ConnectOptions) => Promise<Client>;
  readonly clock: Clock;
  /** Limits how many processes start at the same time, for all servers. */
  readonly slots?: StartSlots | undefined;
  /** Takes the secrets of the config out of messages to callers. */
  readonly hide?: Hide | undefined;
  /** How a failure is described to callers; by its reason alone when left out. */
  readonly describeFailure?: DescribeFailure | undefined;
  /** Whether the server may run in another process of the gateway, which comes and goes for reasons of its own. */
  readonly isPlaced?: boolean | undefined;
  /** What earlier connections to the server learnt of its questions. */
  readonly habits: QuestionHabits;
}

/** How long a call waits for a server that is being started again. */
const patienceMs = 2000;

/** The most processes of a server in a minute that do not last, for all groups together. */
const maxShortLives = 12;

/** How long after a failure a server over HTTP is tried again when a caller needs it: connecting costs little. */
const hurryMs = 1500;

/** The most attempts to reach a server over HTTP in a minute, those of each transport counted. */
const maxHttpStarts = 240;

/** The longest back-off for a server that may run elsewhere. How often it is started here is limited by its gate. */
const maxPlacedMs = 2000;

/** A server that did not answer in time gets more time at the next start, up to this factor. */
const maxTimeoutFactor = 8;

/** Makes the connections to one server, with what they have in common. */
export function createConnectionFactory(options: ConnectionFactoryOptions): CreateConnection {
  const { config, configNow, connect, clock, habits } = options;
  // Connections come and go with sessions and calls, and with them their own gates. Those over HTTP start no process.
  const isProcess = config.launch.kind === "command";
  const common = isProcess ? new StartGate({ clock, maxStarts: maxShortLives }) : undefined;
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
      startPatienceMs: () => configNow().startTimeoutMs,
      slots: isProcess ? options.slots : undefined,
      open: ({ signal, timeouts, onLost, onOpen, onSpawned }) =>
        connect({
          relays: {
            capabilities,
            extensions,
            opened,
            resultTypes,
            server: config.name,
            habits,
            limits: configNow,
          },
          ...(era === "legacy" ? { era } : {}),
          reconnects: false,
          validate: false,
          connectTimeoutMs: configNow().startTimeoutMs * Math.min(2 ** timeouts, maxTimeoutFactor),
          maxStartMs: configNow().maxStartMs,
          clock,
          onLost,
          onOpen,
          onSpawned,
          signal,
        }),
    });
}
