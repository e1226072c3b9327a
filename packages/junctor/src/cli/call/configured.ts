import { resolve } from "node:path";
import { defaultNaming, type Naming, prefixOf } from "@junctor/core/compose";
import { nearest, suggest } from "@junctor/core/options";
import {
  askDaemon,
  compareBuilds,
  type Introduction,
  joinDaemon,
  listRunPlaces,
  placeHash,
  type RunPlace,
} from "../../attach/index.ts";
import { isNamedFor } from "../../catalog/index.ts";
import {
  type GatewayConfig,
  isSource,
  mayWantOAuth,
  type ServerConfig,
  toTarget,
} from "../../config/index.ts";
import type { OfferedServers } from "../../daemon/index.ts";
import { startGateway } from "../../gateway/index.ts";
import { junctor } from "../../invocation/index.ts";
import { createHide, hideInData, secretsAt } from "../../log/index.ts";
import type { ServerStatus } from "../../servers/index.ts";
import { openSource } from "../../sources/index.ts";
import { assertProfile, readConfigFile } from "../config/index.ts";
import { readVersion } from "../index.ts";
import { openLogins } from "../login/index.ts";
import { projectOf } from "../running/index.ts";
import { adviseOn, describeTrouble, note, ServerTrouble, toSafeLine, UsageError } from "../terminal/index.ts";
import { type CommandDeadline, type Destination, type ParsedTarget, toPatient } from "./destination.ts";

/** The part of a config that is wanted: one server by its name, the servers that may have a tool, or all of them. */
export interface Wanted {
  readonly server?: string | undefined;
  readonly tool?: string | undefined;
}

/**
 * One server of the config that is named, or several: behind the daemon if it runs them, else behind a gateway in this process. Other
 * servers are not started.
 */
export async function openConfigured(
  parsed: ParsedTarget,
  { server, tool }: Wanted,
  deadline: CommandDeadline | undefined,
): Promise<Destination> {
  const { file, config } = await readConfigFile(parsed);
  const profile = parsed.flags.profile;
  if (profile !== undefined) assertProfile(config, profile, server, file);
  if (server !== undefined) return toDestination(findServer(config, server, file), config, deadline);
  // The names of a profile's tools do not say which server has them.
  const isAll = tool === undefined || profile !== undefined;
  const wanted = isAll ? config.servers : findOwners(config, tool, file);
  const tell = (statuses: readonly ServerStatus[]): Promise<void> => tellTrouble(statuses, config, !isAll);
  const daemon = parsed.flags["no-daemon"]
    ? undefined
    : await openDaemonTarget({ file, profile, wanted, isOneWanted: !isAll, deadline, tellTrouble: tell });
  if (daemon !== undefined) return daemon;
  const { servers, firstListMs } = toPatient(wanted, deadline?.timeoutMs);
  const gateway = await startGateway(
    { ...config, servers },
    {
      file,
      firstListMs,
      unnamed: "trusted",
      logins: openLogins(),
    },
  );
  await gateway.ready;
  try {
    await tell(gateway.status());
  } catch (error) {
    await gateway.close();
    throw error;
  }
  return {
    target: { server: (profile === undefined ? undefined : gateway.serverAt(profile)) ?? gateway.server },
    headers: {},
    // A command that lists everything has waited long enough: to show what there is takes no time.
    deadline: tool === undefined ? undefined : deadline,
    [Symbol.asyncDispose]: async () => {
      deadline?.[Symbol.dispose]();
      await gateway.close();
    },
  };
}

/**
 * The servers that may have a tool of this name; the others need not be started to call it. Servers without a prefix may have
 * any name: they are asked only when the name is not that of another server. Throws a `UsageError` when there is none.
 */
export function findOwners(
  { servers, separator }: GatewayConfig,
  tool: string,
  file: string,
): readonly ServerConfig[] {
  const naming: Naming = { ...defaultNaming, separator };
  const named = servers.filter((server) => isNamedFor(server, tool, naming));
  if (named.length > 0) return named;
  const unprefixed = servers.filter(({ prefix }) => prefix === false);
  if (unprefixed.length > 0) return unprefixed;
  const begins = servers.flatMap(({ prefix }) => (prefix === false ? [] : prefixOf(prefix, naming)));
  const [word = "", ...rest] = tool.split(separator);
  const meant = nearest(
    word,
    begins.map((begin) => begin.slice(0, -separator.length)),
  );
  const some = begins.length > 8 ? [...begins.slice(0, 8), "…"] : begins;
  const hint =
    meant === undefined || rest.length === 0
      ? `names of its tools begin with ${some.join(", ") || "nothing, because it has no servers"}; ${junctor("tools")} --config ${file} lists them`
      : `did you mean ${[meant, ...rest].join(separator)}?`;
  throw new UsageError(`no server of ${file} can have a tool ${JSON.stringify(tool)}; ${hint}`);
}

/** Says which servers are missing. Throws when no server is left that could have the tool: then the reason is all that matters. */
async function tellTrouble(
  statuses: readonly ServerStatus[],
  config: GatewayConfig,
  isOneWanted: boolean,
): Promise<void> {
  const troubled = statuses.filter(({ trouble }) => trouble !== undefined);
  const isHopeless =
    isOneWanted && statuses.every(({ trouble, tools }) => trouble !== undefined && tools === 0);
  if (!isHopeless) {
    for (const { name, reason, trouble = "" } of troubled)
      await note(`junctor: warning: ${toSafeLine(`${name} is missing: ${reason ?? trouble}`)}\n`);
    return;
  }
  const hide = createHide((server) => secretsAt(config, server));
  const blocks = troubled.map((status) => {
    const launch = config.servers.find(({ name }) => name === status.name)?.launch;
    const advice = launch === undefined ? undefined : adviseOn({ ...status, launch });
    return describeTrouble(hideInData({ ...status, advice }, (json) => hide(json, status.name)));
  });
  throw new ServerTrouble(blocks.join("\n"));
}

function findServer({ servers, disabled }: GatewayConfig, name: string, file: string): ServerConfig {
  const found = servers.find((server) => server.name === name);
  if (found !== undefined) return found;
  const off = disabled.find((server) => server.name === name);
  if (off !== undefined) throw new UsageError(`${file}: ${name} is disabled: ${off.reason}`);
  const names = servers.map((server) => server.name);
  const hint = suggest(name, names, `it has ${names.join(", ") || "none"}`);
  throw new UsageError(`${file} has no server ${JSON.stringify(name)}; ${hint}`);
}

async function toDestination(
  { name, launch, sandbox, oauth }: ServerConfig,
  config: GatewayConfig,
  deadline: CommandDeadline | undefined,
): Promise<Destination> {
  const hide = createHide(() => secretsAt(config, name));
  const server = { name, launch, hide: <T>(data: T): T => hideInData(data, hide) };
  const rest = { deadline, server, [Symbol.asyncDispose]: async () => deadline?.[Symbol.dispose]() };
  if (launch.kind === "http")
    return {
      target: launch.url,
      headers: launch.headers,
      transport: launch.transport,
      ...(mayWantOAuth(launch) ? { login: { name, url: launch.url, oauth } } : {}),
      ...rest,
    };
  if (!isSource(launch)) return { target: toTarget(launch, sandbox), headers: {}, ...rest };
  const onWarning = (error: unknown): void => void note(`junctor: warning: ${toSafeLine(String(error))}\n`);
  return {
    target: { server: await openSource({ name, launch, sandbox }, { onWarning, onError: onWarning }) },
    headers: {},
    ...rest,
  };
}

interface DaemonTargetOptions {
  /** The path of the config. */
  readonly file: string;
  readonly profile: string | undefined;
  /** The servers that the command would start. */
  readonly wanted: readonly ServerConfig[];
  readonly deadline: CommandDeadline | undefined;
  /** Whether these are the servers that may have one tool, and not all of them. */
  readonly isOneWanted: boolean;
  /** Reports servers that are missing. */
  readonly tellTrouble: (servers: readonly ServerStatus[]) => Promise<void>;
}

/** How long the daemon may take to start servers that no client has used yet. */
const patienceMs = 5 * 60_000;

/**
 * The daemon of a config, as the server of a command. Undefined where none runs, or where it would answer otherwise than servers
 * that are started here: its config is not the one on disk, it is another version, or a server is not up there.
 */
async function openDaemonTarget(options: DaemonTargetOptions): Promise<Destination | undefined> {
  const { file, profile, wanted, isOneWanted, deadline } = options;
  const place = findPlace(file);
  if (place === undefined) return undefined;
  // The same caller each time: a task that one command left running is found by the next.
  const workspace = projectOf(process.cwd());
  const introduction: Introduction = {
    build: readVersion(),
    pid: process.pid,
    id: "terminal",
    client: "junctor",
    ...(profile === undefined ? {} : { profile }),
    ...(workspace === undefined ? {} : { workspace }),
  };
  const { env } = process;
  const offered = await ask(place, { ...introduction, control: "servers" }, deadline);
  if (offered === undefined) return undefined;
  const names = new Set(wanted.map(({ name }) => name));
  const servers = offered.servers.filter(({ name }) => names.has(name));
  const why = whyUnfit(offered, servers, isOneWanted);
  const daemon = `the daemon (process ${offered.pid})`;
  if (why !== undefined) {
    await note(`junctor: ${daemon} is not used: ${toSafeLine(why)}\n`);
    return undefined;
  }
  await options.tellTrouble(servers);
  try {
    const { socket } = await joinDaemon(place, { introduction, env });
    await note(`junctor: ${daemon} answers; --no-daemon starts the servers here\n`);
    return {
      target: { readable: socket, writable: socket },
      headers: {},
      deadline,
      [Symbol.asyncDispose]: async () => {
        deadline?.[Symbol.dispose]();
        socket.destroy();
      },
    };
  } catch {
    return undefined; // It ended meanwhile, or was replaced.
  }
}

async function ask(
  place: RunPlace,
  introduction: Introduction,
  deadline: CommandDeadline | undefined,
): Promise<OfferedServers | undefined> {
  try {
    const answerMs = deadline?.timeoutMs ?? patienceMs;
    return (await askDaemon(place, introduction, { env: process.env, answerMs })) as
      | OfferedServers
      | undefined;
  } catch {
    return undefined; // None runs, or it cannot be understood.
  }
}

/** Where the daemon of a config listens, if one ever did. Makes no folder: a command that only looks leaves nothing behind. */
function findPlace(file: string): RunPlace | undefined {
  const hash = placeHash(resolve(file));
  return listRunPlaces().find((place) => place.hash === hash);
}

function whyUnfit(
  { build, isCurrent }: OfferedServers,
  servers: readonly ServerStatus[],
  isOneWanted: boolean,
): string | undefined {
  if (compareBuilds(build, readVersion()) !== 0) return `it is junctor ${build}`;
  if (!isCurrent)
    return `it does not use the config as it is now, and ${junctor("reload")} has it take your edit`;
  // In a list, a server that failed is missing, as it is for clients. Any other that is not up would be started here.
  const isFit = ({ status, tools, reason }: ServerStatus): boolean =>
    status === "up" ||
    (status === "idle" && tools > 0) ||
    (!isOneWanted && (status === "down" || (status === "starting" && reason !== undefined)));
  const unfit = servers.find((server) => !isFit(server));
  return unfit && `${unfit.name} is ${unfit.status} there`;
}
