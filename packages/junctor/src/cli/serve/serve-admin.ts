import { createHash, randomBytes } from "node:crypto";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "@junctor/core/async";
import { ConfigError } from "@junctor/core/errors";
import type { HttpListener, ListenHttpOptions } from "@junctor/server";
import {
  type AdminListener,
  type AdminSource,
  type EditedConfig,
  type KeptLog,
  listenAdmin,
  ServerDays,
} from "../../admin/index.ts";
import {
  type GatewayConfig,
  listSettings,
  readConfigText,
  sourceOfFiles,
  stateFolder,
  type TracesConfig,
} from "../../config/index.ts";
import type { OnServer, RunningGateway } from "../../gateway/index.ts";
import type { ServerStatus } from "../../servers/index.ts";
import {
  AccessLog,
  createAccessFile,
  createOtlpExporter,
  createTelemetry,
  type OtlpExporter,
  type Sampler,
  type Telemetry,
  type Tracer,
} from "../../telemetry/index.ts";
import { readVersion } from "../index.ts";
import { adviseOn, describeError, withAdvice } from "../terminal/index.ts";
import { adminSocket } from "./admin-client.ts";

interface ObservedOptions {
  readonly config: GatewayConfig;
  /** `daemon` for the daemon, whose clients are on stdio. */
  readonly transport: "http" | "stdio" | "tcp" | "daemon";
  readonly log: KeptLog;
  /** The file of the config; undefined for the demo. */
  readonly file: string | undefined;
  readonly worker?: WorkerPlace | undefined;
}

/** One of several workers. */
export interface WorkerPlace {
  /** From 1 on. */
  readonly number: number;
  /** How many there are. */
  readonly count: number;
  /** The process number of the primary. */
  readonly primary: number;
  /** The key of the admin API in this run, where the config names none; the same for all workers. */
  readonly adminKey: string;
  /** The folder of the sockets between workers. */
  readonly folder: string;
  /** Open until the worker and all its children are gone. */
  readonly heldFd: number;
}

interface ShownParts {
  readonly gateway: RunningGateway;
  readonly edits: EditedConfig | undefined;
  readonly http: HttpListener | undefined;
  readonly drain: () => void;
  readonly stop: () => void;
}

/** Where the admin API is. */
interface ShownAdmin {
  /** Undefined when it does not listen on TCP. */
  readonly url: string | undefined;
  /** The key of this run; undefined when the config names one. */
  readonly key: string | undefined;
  /** The address of the page, with the key of this run if it has one; undefined without a page. */
  readonly page: string | undefined;
}

export function newAdminKey(): string {
  return randomBytes(24).toString("base64url");
}

/** Why a request was refused, by its HTTP status. */
const reasons: { readonly [status: number]: string } = {
  400: "bad_request",
  401: "no_key",
  403: "forbidden",
  404: "not_found",
  405: "bad_method",
  406: "not_acceptable",
  413: "too_large",
  415: "not_json",
  429: "too_many",
  500: "internal",
  503: "overloaded",
};

const usualPort = 7781;
const adminPlace = {
  portSetting: '"junctor": { "admin": { "port": PORT } }',
  hostSetting: '"junctor": { "admin": { "host": "127.0.0.1" } }',
};
const pageFolder = fileURLToPath(new URL("../page", import.meta.url));

/**
 * What `junctor serve` observes of its gateway, and shows of it. Made before the gateway starts, so that nothing is missed. Disposing
 * it closes the admin API.
 */
export class Observed implements AsyncDisposable {
  readonly #options: ObservedOptions;
  readonly #accessLog: AccessLog | undefined;
  readonly #spans: Spans | undefined;
  /** How often each server was started. */
  readonly #starts = new Map<string, number>();
  readonly #days = new ServerDays();
  #gateway: RunningGateway | undefined;
  #admin: AdminListener | undefined;
  /** Undefined when nothing is observed. */
  readonly telemetry: Telemetry | undefined;

  constructor(options: ObservedOptions) {
    const { config, log } = options;
    this.#options = options;
    this.#accessLog = openAccessLog(config.accessLog, log);
    this.#spans = openSpans(readTraceSettings(config.traces, process.env), log);
    // A process that ends in another way than by a signal writes its last lines too.
    if (this.#accessLog !== undefined) process.once("exit", this.#flush);
    this.telemetry = this.#createTelemetry();
  }

  readonly onServer: OnServer = (server, health) => {
    if (health !== undefined) this.#days.note(server, health, systemClock.date());
    if (health?.kind === "starting") this.#starts.set(server, (this.#starts.get(server) ?? 0) + 1);
    this.#admin?.serverChanged(server);
  };

  /** Counts requests that were refused before they were served. */
  get onRefused(): ListenHttpOptions["onRefused"] {
    const { telemetry } = this;
    return telemetry && ((status, code, caller) => telemetry.refused(reasons[status] ?? code, caller));
  }

  /** Opens the admin API, unless the config says that there is none. */
  async show(parts: ShownParts): Promise<ShownAdmin | undefined> {
    const { config, transport, log, worker } = this.#options;
    this.#gateway = parts.gateway;
    if (this.telemetry === undefined || config.admin === false) return undefined;
    const isOwnKey = config.admin?.key !== undefined;
    const key = isOwnKey ? undefined : (worker?.adminKey ?? newAdminKey());
    const tcp = toAddress(config, transport, { key, number: worker?.number });
    const listening = listenAdmin({
      source: this.#createSource(parts, this.telemetry),
      tcp,
      // The daemon is asked on its own socket.
      socket: process.platform === "win32" || transport === "daemon" ? undefined : adminSocket(process.pid),
      pageFolder,
      toPage: (url) => toPageUrl(url, key),
      onWarning: (text, error) => log.warn(error === undefined ? {} : { error: describeError(error) }, text),
    });
    const admin = await (tcp === undefined ? listening : withAdvice({ ...tcp, ...adminPlace }, listening));
    this.#admin = admin;
    return { url: admin.url, key, page: admin.hasPage ? toPageUrl(admin.url, key) : undefined };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.telemetry?.[Symbol.dispose]();
    this.#flush();
    process.off("exit", this.#flush);
    await this.#spans?.sink[Symbol.asyncDispose]();
    await this.#admin?.[Symbol.asyncDispose]();
  }

  readonly #flush = (): void => this.#accessLog?.[Symbol.dispose]();

  #createTelemetry(): Telemetry | undefined {
    const { config, transport, log } = this.#options;
    const isShown = config.admin !== false;
    const accessLog = this.#accessLog;
    const spans = this.#spans;
    if (!isShown && accessLog === undefined && spans === undefined) return undefined;
    return createTelemetry({
      tracer: spans && {
        ...spans,
        toDate: (reading) => systemClock.date() - (performance.now() - reading),
        peerOf: (server) => toPeer(this.#gateway, server),
      },
      transport: transport === "daemon" ? "stdio" : transport,
      isShown,
      hasHistory: config.history,
      usageFolder: this.#usageFolder,
      onUsageLost: (error) =>
        log.warn({ error: describeError(error) }, "the counters of calls cannot be written"),
      accessLog,
      records: (server) => this.#gateway?.controls.isRecorded(server) === true,
      redact: (json) => this.#gateway?.controls.redact(json) ?? "null",
    });
  }

  get #usageFolder(): string | undefined {
    const { admin, history } = this.#options.config;
    return admin !== false && history ? join(stateFolder(), "usage") : undefined;
  }

  /** What the admin API shows and does. */
  #createSource({ gateway, http, edits, drain, stop }: ShownParts, telemetry: Telemetry): AdminSource {
    const { config, log, file, worker } = this.#options;
    let isReady = false;
    let isDraining = false;
    void gateway.ready.then(() => {
      isReady = true;
    });
    return {
      gateway,
      telemetry,
      log,
      clock: systemClock,
      version: readVersion(),
      file: file && resolve(file),
      worker,
      hasKeys: () => gateway.controls.needsProof(),
      http: () => http,
      edits,
      days: this.#days,
      usageFolder: this.#usageFolder,
      settings: () => {
        if (file === undefined) return [];
        const source = { file, env: process.env, folder: dirname(resolve(file)), ...sourceOfFiles };
        return listSettings(readConfigText(file), source);
      },
      warnings: () => config.warnings,
      advise: (status) => adviseOnStatus(gateway, status),
      restarts: (server) => Math.max(0, (this.#starts.get(server) ?? 0) - 1),
      isReady: () => isReady,
      // The MCP listener also drains when the process is asked to stop.
      isDraining: () => isDraining || http?.inspect().isDraining === true,
      drain: () => {
        isDraining = true;
        drain();
      },
      stop,
    };
  }
}

/**
 * A gateway on stdio or TCP is started often, and has a port for people only if the config says so. A daemon has a page for each of
 * its gateways, and leaves the usual port to `junctor serve`.
 */
function toAddress(
  { admin }: GatewayConfig,
  transport: ObservedOptions["transport"],
  { key = "", number = 1 }: { readonly key: string | undefined; readonly number: number | undefined },
): NonNullable<Parameters<typeof listenAdmin>[0]["tcp"]> | undefined {
  const isDaemon = transport === "daemon";
  if (admin === false || (admin === undefined && transport !== "http" && !isDaemon)) return undefined;
  const { host = "127.0.0.1", port = isDaemon ? 0 : undefined, allowedHosts = [], key: own } = admin ?? {};
  return {
    host,
    // Each worker has a port of its own, from the first on.
    port: port === 0 ? 0 : (port ?? usualPort) + number - 1,
    isFlexible: port === undefined || isDaemon,
    keyHash: own?.sha256 ?? createHash("sha256").update(key).digest("hex"),
    isOwnKey: own !== undefined,
    allowedHosts,
  };
}

/** A browser does not send the part after `#`. A key of the config is not known here, and the page asks for it. */
function toPageUrl(url: string | undefined, key: string | undefined): string | undefined {
  if (url === undefined) return undefined;
  return key === undefined ? `${url}/` : `${url}/#key=${key}`;
}

function openAccessLog(wanted: GatewayConfig["accessLog"], log: KeptLog): AccessLog | undefined {
  if (wanted === undefined) return undefined;
  const onFailed = (error: unknown): void =>
    log.error({ error: describeError(error) }, "lines of the access log cannot be written, and are dropped");
  const write =
    wanted === "stderr"
      ? (lines: string): void => void process.stderr.write(lines)
      : createAccessFile({ ...wanted, onFailed });
  return new AccessLog({ write, clock: systemClock });
}

function adviseOnStatus({ controls }: RunningGateway, status: ServerStatus): string | undefined {
  const server = controls.server(status.name);
  return server && adviseOn({ ...status, launch: server.config.launch });
}

type Spans = Pick<Tracer, "sampler"> & { readonly sink: OtlpExporter };

function openSpans(settings: TraceSettings | undefined, log: KeptLog): Spans | undefined {
  if (settings === undefined) return undefined;
  const { sampler, ...where } = settings;
  const onFailed = (reason: string): void => log.warn({ reason }, "spans cannot be sent, and are dropped");
  return {
    sampler,
    sink: createOtlpExporter({ ...where, version: readVersion(), clock: systemClock, onFailed }),
  };
}

/** How a server behind the gateway is reached, for its spans. */
function toPeer(gateway: RunningGateway | undefined, server: string): ReturnType<Tracer["peerOf"]> {
  const facts = gateway?.controls.server(server);
  const revision = facts?.health.kind === "up" ? facts.health.agreement.mode.revision : undefined;
  if (facts?.config.launch.kind !== "http") return { transport: "stdio", revision };
  const { hostname, port, protocol } = new URL(facts.config.launch.url);
  const usual = protocol === "https:" ? 443 : 80;
  return { transport: "http", address: hostname, port: port === "" ? usual : Number(port), revision };
}

/** How requests are traced, from the config and the variables of OpenTelemetry. */
interface TraceSettings {
  readonly endpoint: string;
  readonly headers: { readonly [name: string]: string };
  readonly resource: { readonly [name: string]: string };
  readonly sampler: Sampler;
}

const usualEndpoint = "http://localhost:4318";

/**
 * The settings; undefined when nothing is traced. The config decides what it says; the `OTEL_*` variables fill in the rest, and
 * switch tracing on by themselves when one of them names an endpoint or the exporter.
 */
export function readTraceSettings(
  config: TracesConfig | undefined,
  env: { readonly [name: string]: string | undefined },
): TraceSettings | undefined {
  const readVariable = (name: string): string | undefined => (env[name] === "" ? undefined : env[name]);
  if (readVariable("OTEL_SDK_DISABLED")?.toLowerCase() === "true") return undefined;
  const exporter = readVariable("OTEL_TRACES_EXPORTER");
  const base = readVariable("OTEL_EXPORTER_OTLP_ENDPOINT");
  const own = readVariable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  if (config === undefined) {
    if (exporter === "none") return undefined;
    if (exporter === undefined && base === undefined && own === undefined) return undefined;
    if (exporter !== undefined && exporter !== "otlp")
      throw wrong("OTEL_TRACES_EXPORTER", `is ${JSON.stringify(exporter)}: write otlp or none`);
  }
  const endpoint = config?.endpoint ?? own ?? `${(base ?? usualEndpoint).replace(/\/$/, "")}/v1/traces`;
  if (!/^https?:\/\//.test(endpoint) || !URL.canParse(endpoint))
    throw wrong("OTEL_EXPORTER_OTLP_ENDPOINT", "is not an http or https address");
  assertProtocol(
    readVariable("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") ?? readVariable("OTEL_EXPORTER_OTLP_PROTOCOL"),
  );
  const headers =
    readVariable("OTEL_EXPORTER_OTLP_TRACES_HEADERS") ?? readVariable("OTEL_EXPORTER_OTLP_HEADERS");
  const resource = readPairs("OTEL_RESOURCE_ATTRIBUTES", readVariable("OTEL_RESOURCE_ATTRIBUTES"));
  const service =
    config?.service ?? readVariable("OTEL_SERVICE_NAME") ?? resource["service.name"] ?? "junctor";
  return {
    endpoint,
    headers: { ...readPairs("OTEL_EXPORTER_OTLP_HEADERS", headers), ...config?.headers },
    resource: { ...resource, "service.name": service },
    sampler:
      config?.percent === undefined
        ? readSampler(readVariable("OTEL_TRACES_SAMPLER"), readVariable("OTEL_TRACES_SAMPLER_ARG"))
        : { ratio: config.percent / 100, isParentBased: true },
  };
}

/** JSON over HTTP is what we write; a collector takes it on the port of protobuf over HTTP too. */
function assertProtocol(protocol: string | undefined): void {
  if (protocol === undefined || protocol.startsWith("http/")) return;
  throw wrong(
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    `is ${JSON.stringify(protocol)}: write http/json, and the port for HTTP (4318)`,
  );
}

function readSampler(name = "parentbased_always_on", argument = "1"): Sampler {
  const isParentBased = name.startsWith("parentbased_");
  const kind = isParentBased ? name.slice("parentbased_".length) : name;
  if (kind === "always_on") return { ratio: 1, isParentBased };
  if (kind === "always_off") return { ratio: 0, isParentBased };
  const ratio = Number(argument);
  if (kind !== "traceidratio")
    throw wrong("OTEL_TRACES_SAMPLER", `is ${JSON.stringify(name)}: write parentbased_traceidratio`);
  if (!(ratio >= 0 && ratio <= 1)) throw wrong("OTEL_TRACES_SAMPLER_ARG", "must be a number from 0 to 1");
  return { ratio, isParentBased };
}

/** `key=value,key=value`, percent-encoded. */
function readPairs(variable: string, text = ""): { readonly [name: string]: string } {
  const pairs = text.split(",").filter((pair) => pair.trim() !== "");
  return Object.fromEntries(
    pairs.map((pair) => {
      const [key = "", ...value] = pair.split("=");
      if (key.trim() === "" || value.length === 0)
        throw wrong(variable, "must be written key=value,key=value");
      try {
        return [key.trim(), decodeURIComponent(value.join("=").trim())];
      } catch {
        throw wrong(variable, "has a value that is not percent-encoded");
      }
    }),
  );
}

function wrong(path: string, message: string): ConfigError {
  return new ConfigError("environment", [{ path, message }]);
}
