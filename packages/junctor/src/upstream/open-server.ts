import { type Authorizer, type Client, connect, type ConnectOptions, type Guardian } from "@junctor/client";
import type { CredentialEvent } from "@junctor/client/internal";
import { type Clock, systemClock, Repeats } from "@junctor/core/async";
import { packageVersion } from "@junctor/core/options";
import { type ServerConfig, mayWantOAuth, toTarget } from "../config/index.ts";
import { createServerAuthorizer, type Logins, sharedOwner } from "../credentials/index.ts";
import { type GatewayLog, type ServerWords, createStderrLog } from "../log/index.ts";

interface OpenServerOptions {
  readonly log: GatewayLog;
  readonly clock?: Clock;
  /** Ends the processes we started, also when we are killed. */
  readonly guardian: Guardian | undefined;
  /** Keeps what its process writes besides messages. */
  readonly words: ServerWords;
  /** The credentials of servers that want OAuth. */
  readonly logins: Logins;
  /** Gives requests the token of one caller, in place of the one that all callers use. */
  readonly authorizer?: Authorizer | undefined;
  /** Called for each event of a credential. */
  readonly onCredential?: ((server: string, event: CredentialEvent) => void) | undefined;
}

/** Opens a way to a server as its config says. Its output and its warnings go to the log, under its name. */
export function createOpenServer(
  config: ServerConfig,
  { log, clock = systemClock, guardian, words, logins, authorizer, onCredential }: OpenServerOptions,
): (options: ConnectOptions) => Promise<Client> {
  const { name, launch, sandbox, oauth } = config;
  // Shared by all lines of the server: a dead one breaks the streams of all, again and again.
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
    // The gateway tells these once for each server, not once for each connection.
    onListFault: () => {},
    onLog: ({ level, data }: { readonly level: string; readonly data: unknown }) =>
      log.debug({ server: name, level, data }, "log message of a server"),
  };
  if (launch.kind === "http") {
    const { url, headers, transport } = launch;
    const server = new URL(url);
    const advice = `junctor login ${name}`;
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

/** What became of a credential, for the log. */
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
