import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, relative, resolve } from "node:path";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import {
  findDaemon,
  type StartedDaemon,
  runFront,
  type Introduction,
  openRunPlace,
  type RunPlace,
  userConfig,
} from "../../attach/index.ts";
import { readVersion } from "../index.ts";
import { commands, type FlagRow, type Run } from "../terminal/index.ts";

const flags: { readonly [name: string]: FlagRow } = commands.attach.flags;

/** `junctor attach` */
export const attach: Run<"attach"> = async (parsed) => {
  const flagValues = Object.entries<string | boolean | undefined>(parsed.flags).flatMap(([name, value]) =>
    value === undefined || value === false ? [] : [[name, value === true ? "" : value] as const],
  );
  return serveAttached(new Map(flagValues));
};

/** Serves if every word is a flag of attach with its value; false when the rest of the program must say what is wrong. */
export async function tryAttach(words: readonly string[]): Promise<boolean> {
  const flagValues = new Map<string, string>();
  for (let index = 0; index < words.length; index++) {
    const [, name = "", inline] = /^--([a-z-]+)(?:=(.*))?$/s.exec(words[index] ?? "") ?? [];
    const flag = Object.hasOwn(flags, name) ? flags[name] : undefined;
    if (flag === undefined) return false;
    const value = flag.value === undefined ? "" : (inline ?? words[++index]);
    if (value === undefined || value.startsWith("--") || (flag.value === undefined && inline !== undefined))
      return false;
    flagValues.set(name, value);
  }
  if (!existsSync(flagValues.get("config") ?? userConfig())) return false;
  await serveAttached(flagValues);
  return true;
}

async function serveAttached(flagValues: ReadonlyMap<string, string>): Promise<number> {
  const config = resolve(flagValues.get("config") ?? userConfig());
  const introduction = introduce(flagValues);
  const isTrusted = flagValues.has("unsafe-config");
  const start = (): StartedDaemon => startDaemon(config, isTrusted);
  const serveHere = async (why: unknown): Promise<Duplex> => {
    const text = why instanceof Error ? why.message : String(why);
    const { openHere } = await import("./serve-here.ts");
    const here = await openHere({ config, isTrusted, introduction });
    // Not before: where this process cannot serve either, the daemon ended for the same reason, which is reported once.
    process.stderr.write(`junctor: there is no daemon, so this process serves alone: ${text}\n`);
    return here;
  };
  const open = async (attempt: number): Promise<Duplex> => {
    try {
      if (attempt >= maxAttempts) throw new Error(`${attempt} daemons ended at once`);
      const openPlace = (): RunPlace => openRunPlace(config);
      return (await findDaemon({ openPlace, introduction, env: process.env, start })).socket;
    } catch (error) {
      return serveHere(error);
    }
  };
  process.stderr.on("error", () => {}); // A closed output is not a reason to stop serving.
  await runFront({ input: process.stdin, output: process.stdout, open });
  return 0;
}

/** The most daemons in a row that end before they served anything. */
const maxAttempts = 5;

function introduce(flagValues: ReadonlyMap<string, string>): Introduction {
  const client = flagValues.get("client");
  const profile = flagValues.get("profile");
  const workspace = flagValues.get("workspace") ?? projectOf(process.cwd());
  return {
    build: readVersion(),
    pid: process.pid,
    id: randomBytes(8).toString("hex"),
    ...(client === undefined ? {} : { client }),
    ...(profile === undefined ? {} : { profile }),
    ...(workspace === undefined ? {} : { workspace: resolve(workspace) }),
  };
}

/** Where programs are installed: a client that is started there was not started in a project. */
const programs = ["/usr", "/opt", "/bin", "/Applications", "/System", "C:\\Windows", "C:\\Program Files"];

/** The folder, if it can be that of a project. */
export function projectOf(folder: string): string | undefined {
  const isIn = (parent: string): boolean => {
    const way = relative(parent, folder);
    return way === "" || (!way.startsWith("..") && !isAbsolute(way));
  };
  const isNone = folder === resolve("/") || folder === homedir() || programs.some(isIn);
  return isNone ? undefined : folder;
}

/** Starts the daemon so that it outlives this process and everything that started it. */
function startDaemon(config: string, isTrusted: boolean): StartedDaemon {
  const main = fileURLToPath(new URL("../cli/main.js", import.meta.url));
  const words = [main, "daemon", "--config", config, ...(isTrusted ? ["--unsafe-config"] : [])];
  const child = spawn(process.execPath, words, { detached: true, stdio: "ignore", cwd: homedir() });
  child.unref();
  const ended = Promise.race([once(child, "exit"), once(child, "error").then(() => [1])]);
  return { pid: child.pid, ended: ended.then(([code]) => code as number | null) };
}
