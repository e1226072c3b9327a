import { resolve } from "node:path";
import {
  askDaemon,
  compareBuilds,
  joinDaemon,
  type Introduction,
  listRunPlaces,
  placeHash,
  type RunPlace,
} from "../../attach/index.ts";
import type { ServerConfig } from "../../config/index.ts";
import type { OfferedServers } from "../../daemon/index.ts";
import { junctor } from "../../invocation/index.ts";
import type { ServerStatus } from "../../servers/index.ts";
import { readVersion } from "../index.ts";
import { projectOf } from "../running/index.ts";
import { note, toSafeLine } from "../terminal/index.ts";
import type { CommandDeadline, Destination } from "./destination.ts";

interface DaemonTargetOptions {
  /** The path of the config. */
  readonly file: string;
  readonly profile: string | undefined;
  /** The servers that the command would start. */
  readonly wanted: readonly ServerConfig[];
  readonly deadline: CommandDeadline | undefined;
  /** Whether these are the servers that may have one tool, and not all of them. */
  readonly isOneWanted: boolean;
  /** Tells of servers that are missing. */
  readonly tellTrouble: (servers: readonly ServerStatus[]) => Promise<void>;
}

/** How long the daemon may take to start servers that no client has used yet. */
const patienceMs = 5 * 60_000;

/**
 * The daemon of a config, as the server of a command. Undefined where none runs, or where it would answer otherwise than servers
 * that are started here: its config is not the one on disk, it is another version, or a server is not up there.
 */
export async function openDaemonTarget(options: DaemonTargetOptions): Promise<Destination | undefined> {
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
