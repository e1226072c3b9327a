import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { toChildEnv } from "@junctor/client/internal";
import { systemClock, createDeferred } from "@junctor/core/async";
import { createSeal } from "@junctor/core/mcp";
import { suggest } from "@junctor/core/options";
import { createKeptLog, type KeptLog } from "../../admin/index.ts";
import { askDaemon, compareBuilds, openRunPlace, type RunPlace, userConfig } from "../../attach/index.ts";
import { parseConfigFile, readConfigText, type GatewayConfig, cacheFolder } from "../../config/index.ts";
import { runDaemon, variablesOf, DaemonGateways } from "../../daemon/index.ts";
import { type RunningGateway, startGateway, type StartOptions } from "../../gateway/index.ts";
import { SharedUpstreams } from "../../servers/index.ts";
import { checkPlaces } from "../config/index.ts";
import { readVersion } from "../index.ts";
import { openLogins, readSecrets } from "../login/index.ts";
import { FollowedGateways, createFileLog, listenForReload, Observed } from "../serve/index.ts";
import { describeError, type Run, untilSignal, UsageError } from "../terminal/index.ts";
import { restartDaemon, showDaemon, stopDaemon } from "./daemon-control.ts";
import { daemonLogOf, showDaemonLog } from "./logs.ts";

/** `junctor daemon` */
export const daemon: Run<"daemon"> = async (parsed) => {
  const file = resolve(parsed.flags.config ?? userConfig());
  const [act] = parsed.operands;
  if (act !== undefined) return control(act, file, parsed.flags.json);
  const text = readConfigText(file);
  dropEnvironment();
  process.chdir(homedir());
  const place = openRunPlace(file);
  if (!parsed.flags["take-over"] && (await isServed(place))) return 0;
  const config = parseForNobody(file, text);
  checkPlaces(file, config, parsed.flags["unsafe-config"]);
  const log = createKeptLog(createFileLog(config.log.level, daemonLogOf(place)), systemClock);
  process.on("unhandledRejection", (reason) =>
    log.error({ error: describeError(reason) }, "unhandled rejection"),
  );
  const idleMs = parsed.flags.keep ? undefined : config.daemon.idleMs;
  const isTrusted = parsed.flags["unsafe-config"];
  await serveFronts({ file, text, log, config, idleMs, isTrusted });
  return 0;
};

const acts = ["status", "logs", "stop", "restart"];

async function control(act: string, file: string, isJson: boolean): Promise<number> {
  const place = openRunPlace(file);
  switch (act) {
    case "status":
      return showDaemon(place, file, isJson);
    case "logs":
      await showDaemonLog(place, { level: "debug", isJson });
      return 0;
    case "stop":
      return stopDaemon(place);
    case "restart":
      return restartDaemon(place, file);
    default:
      throw new UsageError(`daemon ${act} is not known; ${suggest(act, acts, `write ${acts.join(", ")}`)}`);
  }
}

async function serveFronts(served: {
  readonly file: string;
  readonly text: string;
  readonly log: KeptLog;
  readonly config: GatewayConfig;
  readonly idleMs: number | undefined;
  readonly isTrusted: boolean;
}): Promise<void> {
  const { file, text, log, config, idleMs, isTrusted } = served;
  const clock = systemClock;
  const onWarning = (warning: string): void => log.warn({}, warning);
  const seal = createSeal({ secrets: readSecrets({ env: process.env, served: file, onWarning }) });
  const claimed = createDeferred<void>();
  const asked = createDeferred<void>();
  await using shared = new SharedUpstreams(clock);
  const followed = new FollowedGateways(file, text);
  const gateways: DaemonGateways = new DaemonGateways({
    file,
    text: () => followed.text,
    clock,
    idleMs: config.daemon.idleMs,
    open: async (resolved, parse) => {
      const { gateway, observed } = await startObserved(resolved, {
        file,
        log,
        seal,
        startsWhen: claimed.promise,
        memoryFolder: join(cacheFolder(), "lists"),
        shared,
      });
      const follows = { file, config: resolved, isTrusted, gateway, log, parse } as const;
      const unfollow = followed.follow({ ...follows, choice: "safe", host: "127.0.0.1" });
      const shown = await observed
        .show({
          gateway: withRestart(gateway, gateways),
          edits: followed,
          http: undefined,
          drain: () => gateway.server.drain(),
          stop: asked.resolve,
        })
        // A client is served also without a page.
        .catch((error: unknown) => {
          log.warn({ error: describeError(error) }, "there is no admin page");
          return undefined;
        });
      return {
        gateway,
        pageUrl: shown?.page,
        [Symbol.asyncDispose]: async () => {
          unfollow();
          await observed[Symbol.asyncDispose]();
          await gateway.close();
        },
      };
    },
  });
  using _reload = await listenForReload(file, followed, onWarning);
  const stopped = Promise.race([untilSignal(() => undefined), asked.promise]);
  await runDaemon({
    openPlace: () => openRunPlace(file),
    file,
    build: readVersion(),
    gateways,
    isCurrent: () => followed.isCurrent(),
    log,
    clock,
    idleMs,
    stopped,
    onClaimed: claimed.resolve,
  });
}

/** Starts the gateway of some fronts, and begins to observe it. */
async function startObserved(
  config: GatewayConfig,
  options: StartOptions & { readonly file: string; readonly log: KeptLog },
): Promise<{ readonly gateway: RunningGateway; readonly observed: Observed }> {
  const { file, log } = options;
  // Several gateways of one process would write the same files.
  const observedConfig = { ...config, accessLog: undefined, traces: undefined };
  const observed = new Observed({ config: observedConfig, transport: "daemon", log, file });
  try {
    const gateway = await startGateway(config, {
      ...options,
      unnamed: "trusted",
      logins: openLogins(),
      observer: observed.telemetry?.observer,
      onServer: observed.onServer,
    });
    return { gateway, observed };
  } catch (error) {
    await observed[Symbol.asyncDispose]();
    throw error;
  }
}

/** The page of one gateway restarts a server for all clients of the daemon, as `junctor restart` does. */
function withRestart(gateway: RunningGateway, gateways: DaemonGateways): RunningGateway {
  const restart = async (server: string): Promise<boolean> =>
    (await gateways.restart(server)).servers.length > 0;
  return { ...gateway, controls: { ...gateway.controls, restart } };
}

/** Whether a daemon that is no older than this one answers at the place. */
async function isServed(place: RunPlace): Promise<boolean> {
  const build = readVersion();
  try {
    const answer = await askDaemon(place, { build, pid: process.pid, id: "", control: "probe" });
    return compareBuilds((answer as { readonly build: string }).build, build) >= 0;
  } catch {
    return false;
  }
}

/** The settings of the gateway as a whole, which depend on no client. */
function parseForNobody(file: string, text: string): GatewayConfig {
  const env = Object.fromEntries(variablesOf(file, text).map((name) => [name, "unknown"]));
  return parseConfigFile(file, text, env, homedir());
}

/** What the daemon itself needs, and its servers do not get: the secret of sessions, and the way to the keychain. */
const ownVariables = new Set(["JUNCTOR_SECRET", "DBUS_SESSION_BUS_ADDRESS"]);

/**
 * Keeps what programs need to run, and nothing else: the daemon serves clients with other environments than that of the client
 * which happened to start it.
 */
function dropEnvironment(): void {
  const kept = toChildEnv(process.env, {}, process.platform);
  for (const name of Object.keys(process.env))
    if (!Object.hasOwn(kept, name) && !ownVariables.has(name)) delete process.env[name];
}
