import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { createDeferred } from "@junctor/core/async";
import { type Seal, createSeal, type Server } from "@junctor/core/mcp";
import { defined } from "@junctor/core/options";
import { type HttpListener, listenHttp, serveStdio, listenTcp } from "@junctor/server";
import { constrainedBytes } from "@junctor/server/internal";
import type { EditedConfig, KeptLog } from "../../admin/index.ts";
import { type Cluster, ttlMs as leaseMs, type ClusterStore } from "../../cluster/index.ts";
import { isOpen, cacheFolder } from "../../config/index.ts";
import { startGateway, type RunningGateway } from "../../gateway/index.ts";
import { readVersion } from "../index.ts";
import { openLogins } from "../login/index.ts";
import { describeError, withAdvice } from "../terminal/index.ts";
import { createDemoRegistry } from "./demo.ts";
import { Observed, type WorkerPlace } from "./serve-admin.ts";
import { drainReplica, openReplica } from "./serve-cluster.ts";
import type { ServePlan } from "./serve-plan.ts";

/** What a serving process gets from outside: from the person who started it, or from the primary of the workers. */
export interface ServeGatewayOptions {
  readonly log: KeptLog;
  /** They seal sessions and states. */
  readonly secrets: readonly string[];
  /** The facts that the workers of one machine share. Without it, the config may name a store. */
  readonly store?: ClusterStore;
  /** Resolves when the process is asked to stop. */
  readonly stopped: Promise<void>;
  /** Its number and what only workers have; undefined for a process that serves alone. */
  readonly worker?: WorkerPlace;
  /** Stops everything, because the admin API was asked to. */
  readonly stop: () => void;
  /** Has the gateway take edits of the config, until what it resolves with is disposed. Undefined without a config. */
  readonly follow: (gateway: RunningGateway) => Promise<(EditedConfig & Disposable) | undefined>;
  /** Reports where it listens, and resolves when all is reported. */
  readonly greet: (listening: ServedListener) => Promise<void>;
}

/** A gateway that listens. */
export interface ServedListener {
  readonly url: string;
  readonly gateway: RunningGateway;
  /** The address of the admin page, if there is one for people. */
  readonly page: string | undefined;
}

/** Serves a gateway until it is asked to stop. Resolves with the exit code. */
export async function serveGateway(plan: ServePlan, options: ServeGatewayOptions): Promise<number> {
  // V8 notices which lines of code make objects that live long, and then makes all objects of these lines in old memory. After a start
  // with a thousand clients that open a stream each, those of short calls would be among them, and calls cost twice as much.
  setFlagsFromString("--no-allocation-site-pretenuring");
  const { opened, config, transport, profile } = plan;
  const { log, stopped, stop, secrets, store, worker } = options;
  const file = opened?.file;
  const seal = createSeal({ secrets });
  const onWarning = (text: string, error?: unknown): void =>
    log.warn(error === undefined ? {} : { error: describeError(error) }, text);
  await using cluster = await openReplica({ config, secrets, store, worker, onWarning });
  const info = { name: "junctor-demo", title: "Junctor demo", version: readVersion() };
  const local = file === undefined ? { local: { demo: createDemoRegistry() }, info } : {};
  const named = file === undefined ? {} : { file };
  // Clients on stdio and TCP have no way to present a key. They started us, or share our machine, as do all clients without keys.
  const unnamed = transport === "http" && !isOpen(config) ? "refused" : "trusted";
  // A user's middleware may forget to catch something; that must harm its own call only.
  process.on("unhandledRejection", (reason) =>
    log.error({ error: describeError(reason) }, "unhandled rejection"),
  );
  await using observed = new Observed({ config, transport, log, file, worker });
  const claimed = createDeferred<void>();
  await using gateway = await startGateway(config, {
    ...local,
    ...named,
    unnamed,
    log,
    seal,
    cluster,
    startsWhen: claimed.promise,
    logins: openLogins(),
    accounts: plan.transport === "http",
    observer: observed.telemetry?.observer,
    onServer: observed.onServer,
    memoryFolder: join(cacheFolder(), "lists"),
    heldFd: worker?.heldFd,
  });
  using following = await options.follow(gateway);
  const { onRefused } = observed;
  const server = (profile === undefined ? undefined : gateway.serverAt(profile)) ?? gateway.server;
  const show: ServedGateway["show"] = (http, drain) =>
    observed.show({ gateway, edits: following, http, drain, stop });
  const greet: ServedGateway["greet"] = (url, page) => {
    claimed.resolve();
    return options.greet({ url, page, gateway });
  };
  const serving: ServedGateway = {
    plan,
    gateway,
    server,
    cluster,
    seal,
    log,
    stopped,
    worker,
    onRefused,
    show,
    greet,
  };
  if (transport === "stdio") claimed.resolve();
  return await serveOn[transport](serving);
}

/** A gateway whose servers are not started yet. */
interface ServedGateway {
  readonly plan: ServePlan;
  readonly gateway: RunningGateway;
  /** Its server, or that of one of its profiles. */
  readonly server: Server;
  /** The other processes that serve the same, if there are any. */
  readonly cluster: Cluster | undefined;
  readonly seal: Seal;
  readonly log: KeptLog;
  /** Resolves when the process is asked to stop. */
  readonly stopped: Promise<void>;
  readonly worker: WorkerPlace | undefined;
  readonly onRefused: Observed["onRefused"];
  /** Opens the admin API. */
  show(http: HttpListener | undefined, drain: () => void): ReturnType<Observed["show"]>;
  /** Starts the servers and greets. Nothing is started before the port is ours: a second gateway would start everything twice. */
  greet(url: string, page?: string): Promise<void>;
}

const serveOn: {
  readonly [Transport in ServePlan["transport"]]: (serving: ServedGateway) => Promise<number>;
} = { http: serveOnHttp, stdio: serveOnStdio, tcp: serveOnTcp };

/** How long a call may take besides the limits of its server: to start the server, and to read the result. */
const startAndReadMs = 10 * 60_000;

async function serveOnStdio(serving: ServedGateway): Promise<number> {
  const { server, plan, stopped } = serving;
  void serving.show(undefined, () => server.drain());
  const stopping = new AbortController();
  void stopped.then(() => {
    server.drain();
    stopping.abort();
  });
  // A client that pipes calls in and ends its input still wants the answers: each call has the time its server has.
  const { servers } = plan.config;
  const lingerMs = Math.max(0, ...servers.map(({ maxTotalMs }) => maxTotalMs)) + startAndReadMs;
  // The demo has nothing that is worth waiting for.
  const stopMs = servers.length === 0 ? 250 : 10_000;
  await serveStdio(server, { signal: stopping.signal, lingerMs, stopMs });
  return 0;
}

async function serveOnTcp(serving: ServedGateway): Promise<number> {
  const { server, plan } = serving;
  const { port, host } = plan;
  const listening = listenTcp(server, { port, host, stopMs: 10_000, graceMs: 10_000 });
  await using listener = await withAdvice(
    { host, port, portSetting: "--tcp PORT", hostSetting: "--host 127.0.0.1" },
    listening,
  );
  await serving.show(undefined, () => server.drain());
  const name = listener.host.includes(":") ? `[${listener.host}]` : listener.host;
  await serving.greet(`tcp://${name}:${listener.port}`);
  await serving.stopped;
  server.drain();
  return 0;
}

/** Workers share the memory of the container that they run in. */
function toShareOfMemory(worker: WorkerPlace | undefined): { readonly maxMemoryBytes?: number } {
  const bytes = constrainedBytes();
  return worker === undefined || bytes === undefined ? {} : { maxMemoryBytes: bytes / worker.count };
}

async function serveOnHttp(serving: ServedGateway): Promise<number> {
  const { gateway, server, cluster, seal, log, plan } = serving;
  const { http } = plan.config;
  let isReady = false;
  void gateway.ready.then(() => {
    isReady = true;
  });
  const { allowedHosts, allowedOrigins, corsOrigins, ...rest } = http;
  const listening = listenHttp(server, {
    port: plan.port,
    host: plan.host,
    seal,
    allowedHosts,
    allowedOrigins,
    corsOrigins,
    ...defined({ publicUrl: rest.publicUrl, tls: rest.tls, serverCard: rest.serverCard }),
    perCaller: gateway.perCaller,
    ...toShareOfMemory(serving.worker),
    authenticate: gateway.admit,
    ...(server === gateway.server ? { mounts: gateway.mounts } : {}),
    ...defined({ pages: gateway.pages }),
    // Just after the store started no replica can get a lease. A balancer must still send calls here, where they can wait.
    isReady: () => (isReady ||= cluster?.store.isYoung?.(leaseMs) === true),
    elsewhere: cluster?.homes,
    onRefused: serving.onRefused,
    onWarning: (text, error) => log.warn(error === undefined ? {} : { error: describeError(error) }, text),
  });
  await using listener = await withAdvice(
    { host: plan.host, port: plan.port, portSetting: "--port PORT", hostSetting: "--host 127.0.0.1" },
    listening,
  );
  cluster?.trunk.serve({ pipe: listener.pipe });
  const admin = await serving.show(listener, listener.drain);
  await serving.greet(listener.url, admin?.page);
  await serving.stopped;
  if (cluster !== undefined) await drainReplica(cluster, { gateway, listener, drainMs: plan.config.drainMs });
  return 0;
}
