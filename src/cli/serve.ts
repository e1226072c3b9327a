import { join, resolve } from "node:path";
import { createKeptLog } from "../admin/kept-log.ts";
import { systemClock } from "../async/clock.ts";
import { createDeferred } from "../async/deferred.ts";
import { BindError } from "../errors/bind-error.ts";
import { isOpen } from "../gateway/config-access.ts";
import type { GatewayConfig } from "../gateway/config/config.ts";
import { parseConfigValue } from "../gateway/config/parse-config.ts";
import { type RunningGateway, startGateway } from "../gateway/gateway.ts";
import type { GatewayLog } from "../gateway/log.ts";
import { cacheFolder } from "../gateway/user-files.ts";
import { type Seal, createSeal } from "../mcp/seal.ts";
import type { Server } from "../mcp/server.ts";
import { defined } from "../options/defined.ts";
import { type HttpListener, listenHttp } from "../transports/http/server/node.ts";
import { isLoopback } from "../transports/loopback.ts";
import { serveStdio } from "../transports/stream.ts";
import { listenTcp } from "../transports/tcp.ts";
import { type Command, type Parsed, UsageError, configFlags, parsePort, refuseOperands } from "./command.ts";
import { assertProfile, type ConfigFile, findConfigFile } from "./config-file.ts";
import { createDemoRegistry } from "./demo.ts";
import { type FollowedConfig, followConfig, type ReloadChoice, reloadChoices } from "./follow-config.ts";
import { describeGateway, describeHttp, describePage, describeServers, describeTcp } from "./greeting.ts";
import { untilSignal } from "./interrupt.ts";
import { createLog } from "./log.ts";
import { openLogins } from "./logins-store.ts";
import { describeError } from "./print.ts";
import { listenForReload } from "./reload-socket.ts";
import { readSecrets } from "./secrets.ts";
import { type Observed, observe } from "./serve-admin.ts";
import { readVersion } from "./version.ts";

/** `junctor serve` */
export const serve: Command = {
  name: "serve",
  summary:
    "Serve MCP servers behind one endpoint; without a config, the demo tools echo, add, countdown, greet.",
  flags: {
    ...configFlags,
    host: { value: "HOST", help: "the address to listen on (default 127.0.0.1)" },
    port: { value: "PORT", help: "the HTTP port (default 7780; 0 picks a free one)" },
    stdio: { help: "on standard input and output instead, for a client that starts us" },
    tcp: { value: "PORT", help: "on a TCP port instead, one JSON message a line" },
    profile: { value: "NAME", help: "a profile of the config alone, without /mcp/NAME paths" },
    reload: { value: "HOW", help: "edits of the config: safe ones at once (safe), all (trust), none (off)" },
    "log-level": { value: "LEVEL", help: "trace, debug, info, warn, error or silent (default info)" },
  },
  examples: [
    "junctor serve                                 the config found here, or the demo tools, on http://127.0.0.1:7780/mcp",
    "junctor serve --config .mcp.json              every server of the file behind one URL",
    "junctor serve --config .mcp.json --stdio      the same for a client that starts us",
  ],
  run: async (parsed) => {
    assertSensible(parsed);
    const opened = await findConfigFile(parsed, !parsed.has("stdio"));
    const file = opened?.file;
    const config = opened?.config ?? noConfig;
    const host = parsed.valueOf("host") ?? config.http.host ?? "127.0.0.1";
    assertKeys(host, config, parsed);
    const profile = parsed.valueOf("profile");
    if (profile !== undefined) assertProfile(config, profile, undefined, file);
    const tcp = parsed.valueOf("tcp");
    const port =
      tcp === undefined
        ? parsePort("port", parsed.valueOf("port") ?? String(config.http.port ?? 7780))
        : parsePort("tcp", tcp);
    const log = createKeptLog(createLog(levelOf(parsed, opened)), systemClock);
    const served = file === undefined ? "demo" : resolve(file);
    const onWarning = (text: string): void => log.warn({}, text);
    const seal = createSeal({ secrets: readSecrets({ env: process.env, served, onWarning }) });
    const info = { name: "junctor-demo", title: "Junctor demo", version: readVersion() };
    const local = file === undefined ? { local: { demo: createDemoRegistry() }, info } : {};
    const named = file === undefined ? {} : { file };
    // Clients on stdio and TCP have no way to present a key. They started us, or share our machine.
    const unnamed = parsed.has("stdio") || parsed.has("tcp") ? "trusted" : "refused";
    // A user's middleware may forget to catch something; that is its own call's trouble and no other's.
    process.on("unhandledRejection", (reason) =>
      log.error({ error: describeError(reason) }, "something failed unheard"),
    );
    const choice = reloadChoiceOf(parsed);
    let followed: FollowedConfig | undefined;
    const agree = (): void => void followed?.agree();
    const asked = createDeferred<void>();
    const signalled = untilSignal(() => (opened === undefined ? undefined : agree));
    const stopped = Promise.race([signalled, asked.promise]);
    const transport = parsed.has("stdio") ? "stdio" : tcp === undefined ? "http" : "tcp";
    await using observed = observe({ config, transport, log, file });
    const claimed = createDeferred<void>();
    const startsWhen = claimed.promise;
    await using gateway = await startGateway(config, {
      ...local,
      ...named,
      unnamed,
      log,
      seal,
      startsWhen,
      logins: openLogins(),
      accounts: transport === "http",
      observer: observed.telemetry?.observer,
      onServer: observed.onServer,
      memoryFolder: join(cacheFolder(), "lists"),
    });
    const show = (http: HttpListener | undefined, drain: () => void): ReturnType<Observed["show"]> =>
      observed.show({ gateway, edits: followed, http, drain, stop: asked.resolve });
    const { onRefused } = observed;
    const start = claimed.resolve;
    const server = (profile === undefined ? undefined : gateway.serverAt(profile)) ?? gateway.server;
    const serving: ServedGateway = { gateway, server, opened, choice, start, stopped, onRefused, show };
    const bound = parsed.has("stdio") ? "127.0.0.1" : host;
    using following =
      opened === undefined ? undefined : followConfig({ ...opened, choice, gateway, host: bound, log });
    followed = following;
    using _asked = following === undefined ? undefined : await listenForReload(served, following, onWarning);
    if (parsed.has("stdio")) return await serveOnStdio(serving);
    if (tcp !== undefined) return await serveOnTcp(serving, { port, host });
    return await serveOnHttp(serving, { port, host, seal, log });
  },
};

function assertSensible(parsed: Parsed): void {
  refuseOperands("serve", parsed);
  const transports = [
    parsed.has("stdio") ? "--stdio" : undefined,
    parsed.valueOf("tcp") === undefined ? undefined : "--tcp",
    parsed.valueOf("port") === undefined ? undefined : "--port",
  ].filter((flag) => flag !== undefined);
  if (transports.length > 1) throw new UsageError(`choose one of ${transports.join(" and ")}`);
  if (parsed.has("stdio") && parsed.has("host"))
    throw new UsageError("--stdio listens on no address; leave out --host");
}

const levels = ["trace", "debug", "info", "warn", "error", "silent"];

function levelOf(parsed: Parsed, opened: ConfigFile | undefined): string {
  // The demo has nothing to tell but what its greeting says.
  const usual = opened?.config.log.level ?? "warn";
  const level = parsed.valueOf("log-level") ?? usual;
  if (!levels.includes(level))
    throw new UsageError(`--log-level needs one of ${levels.join(", ")}, not ${JSON.stringify(level)}`);
  return level;
}

function reloadChoiceOf(parsed: Parsed): ReloadChoice {
  const value = parsed.valueOf("reload") ?? "safe";
  const choice = reloadChoices.find((candidate) => candidate === value);
  if (choice !== undefined) return choice;
  throw new UsageError(`--reload needs one of ${reloadChoices.join(", ")}, not ${JSON.stringify(value)}`);
}

/** Others may reach an address that is not this machine's own, so they must be known. */
function assertKeys(host: string, config: GatewayConfig, parsed: Parsed): void {
  if (parsed.has("stdio") || isLoopback(host)) return;
  if (parsed.has("tcp")) throw new BindError(host, "there are no keys on a TCP port");
  if (!isOpen(config)) return;
  throw new BindError(
    host,
    'the config has neither keys nor issuers: write "junctor": { "keys": { "NAME": { "env": "VARIABLE" } } }',
  );
}

/** A gateway whose servers are not started yet. */
interface ServedGateway {
  readonly gateway: RunningGateway;
  /** Its server, or that of one of its profiles. */
  readonly server: Server;
  /** Undefined for the demo. */
  readonly opened: ConfigFile | undefined;
  readonly choice: ReloadChoice;
  /** Starts the servers. Nothing is started before the port is ours: a second gateway would start everything twice. */
  readonly start: () => void;
  /** Resolves when the process is asked to stop. */
  readonly stopped: Promise<void>;
  readonly onRefused: Observed["onRefused"];
  /** Opens the admin API. */
  show(http: HttpListener | undefined, drain: () => void): ReturnType<Observed["show"]>;
}

/** How long a call may take besides the limits of its server: to be started for, and to be read. */
const startAndReadMs = 10 * 60_000;

async function serveOnStdio(serving: ServedGateway): Promise<number> {
  const { server, opened, start, stopped } = serving;
  start();
  void serving.show(undefined, () => server.drain());
  const stopping = new AbortController();
  void stopped.then(() => {
    server.drain();
    stopping.abort();
  });
  // A client that pipes calls in and ends its input still wants the answers: each call has the time its server has.
  const servers = opened?.config.servers ?? [];
  const lingerMs = Math.max(0, ...servers.map(({ maxTotalMs }) => maxTotalMs)) + startAndReadMs;
  // The demo has nothing that is worth waiting for.
  const stopMs = servers.length === 0 ? 250 : 10_000;
  await serveStdio(server, { signal: stopping.signal, lingerMs, stopMs });
  return 0;
}

interface Address {
  readonly port: number;
  readonly host: string;
}

async function serveOnTcp(serving: ServedGateway, { port, host }: Address): Promise<number> {
  const { server } = serving;
  const listening = listenTcp(server, { port, host, stopMs: 10_000, graceMs: 10_000 });
  await using listener = await withAdvice("tcp", listening);
  const url = `tcp://${listener.host}:${listener.port}`;
  await serving.show(undefined, () => server.drain());
  await greet(serving, url, describeTcp(listener.host, listener.port));
  await serving.stopped;
  server.drain();
  return 0;
}

interface HttpParts extends Address {
  readonly seal: Seal;
  readonly log: GatewayLog;
}

async function serveOnHttp(serving: ServedGateway, { port, host, seal, log }: HttpParts): Promise<number> {
  const { gateway, server, opened } = serving;
  const { http, perCaller } = opened?.config ?? noConfig;
  let isReady = false;
  void gateway.ready.then(() => {
    isReady = true;
  });
  const { allowedHosts, allowedOrigins, corsOrigins, ...rest } = http;
  const listening = listenHttp(server, {
    port,
    host,
    seal,
    allowedHosts,
    allowedOrigins,
    corsOrigins,
    ...defined({ publicUrl: rest.publicUrl, tls: rest.tls, serverCard: rest.serverCard }),
    perCaller,
    authenticate: gateway.admit,
    ...(server === gateway.server ? { mounts: gateway.mounts } : {}),
    ...defined({ pages: gateway.pages }),
    isReady: () => isReady,
    onRefused: serving.onRefused,
    onWarning: (text, error) => log.warn(error === undefined ? {} : { error: describeError(error) }, text),
  });
  await using listener = await withAdvice("port", listening);
  const admin = await serving.show(listener, listener.drain);
  await greet(serving, listener.url, describeHttp(listener.url));
  if (admin?.page !== undefined) process.stdout.write(describePage(admin.page));
  await serving.stopped;
  return 0;
}

/** Starts the servers behind a port that is ours, says at once where it is, and how they are when that is known. */
async function greet(serving: ServedGateway, url: string, demo: string): Promise<void> {
  const { gateway, opened, start, stopped } = serving;
  start();
  if (opened === undefined) return void process.stdout.write(demo);
  const { servers, keys } = opened.config;
  const greeting = {
    count: servers.length,
    key: keys[0]?.name,
    file: opened.file,
    choice: serving.choice,
  };
  process.stdout.write(describeGateway(url, greeting));
  const isStopped = await Promise.race([gateway.ready.then(() => false), stopped.then(() => true)]);
  if (!isStopped) process.stdout.write(describeServers(gateway.status()));
}

/** Only here is it known which flag the port came from. */
async function withAdvice<T>(flag: "tcp" | "port", listening: Promise<T>): Promise<T> {
  try {
    return await listening;
  } catch (error) {
    if (isPortTrouble(error)) throw new PortError(flag, error);
    throw error;
  }
}

function isPortTrouble(error: unknown): error is Error {
  return (
    error instanceof Error && "code" in error && (error.code === "EADDRINUSE" || error.code === "EACCES")
  );
}

/** A port is taken, or only for those with more rights. */
class PortError extends Error {
  override readonly name = "PortError";
  readonly code = "cli.port";

  /** `flag` is the one that chooses another. */
  constructor(flag: string, cause: Error) {
    super(`${cause.message}; choose another port with --${flag} PORT`, { cause });
  }
}

/** What holds when there is no config. */
const noConfig: GatewayConfig = parseConfigValue({ junctor: {} }, { file: "no config", env: {} });
