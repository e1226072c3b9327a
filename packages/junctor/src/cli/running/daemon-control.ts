import { spawn } from "node:child_process";
import { homedir } from "node:os";
import { fileURLToPath } from "node:url";
import { suggest } from "@junctor/core/options";
import { askDaemon, type ControlRequest, type RunPlace } from "../../attach/index.ts";
import type { DaemonStatus, RestartedServer } from "../../daemon/index.ts";
import { junctor } from "../../invocation/index.ts";
import { readVersion } from "../index.ts";
import { note, print, toSafeLine, toSafeText, UsageError } from "../terminal/index.ts";

/** Asks the daemon of a config; undefined when none runs. */
async function ask(place: RunPlace, control: ControlRequest): Promise<unknown> {
  try {
    return await askDaemon(place, { build: readVersion(), pid: process.pid, id: "", control });
  } catch {
    return undefined;
  }
}

/** The status of the daemon at a place; undefined when none runs. */
export async function askStatus(place: RunPlace): Promise<DaemonStatus | undefined> {
  return (await ask(place, "status")) as DaemonStatus | undefined;
}

/** Prints the status of the daemon of a config, with its clients and servers. */
export async function showDaemon(place: RunPlace, config: string, isJson: boolean): Promise<number> {
  const status = await askStatus(place);
  if (isJson) await print(`${JSON.stringify(status ?? null)}\n`);
  else
    await print(status === undefined ? `no daemon runs for ${toSafeLine(config)}\n` : describeDaemon(status));
  return status === undefined ? 3 : 0;
}

/** A daemon with its clients and servers, for a person. */
export function describeDaemon({ pid, build, config, fronts, gateways }: DaemonStatus): string {
  const clients = fronts.map(
    ({ client = "a client", pid: front, profile, workspace }) =>
      `  ${[client, `process ${front}`, profile && `profile ${profile}`, workspace && `in ${workspace}`].filter(Boolean).join(", ")}`,
  );
  const servers = gateways.flatMap(({ workspace, servers: all, pageUrl }) => [
    // Clients of several projects may have the same servers; then there is one list.
    gateways.length === 1
      ? "Servers:"
      : `Servers for clients ${workspace === undefined ? "without a project" : `in ${workspace}`}:`,
    ...all.map(({ name, status, tools, trouble }) => {
      const what = status === "up" ? (tools === 1 ? "1 tool" : `${tools} tools`) : (trouble ?? "");
      return `  ${name}: ${[status, what].filter(Boolean).join(", ")}`;
    }),
    // A key is shown to a person, and written to no file.
    ...(pageUrl !== undefined && process.stdout.isTTY ? [`See it: ${pageUrl}`] : []),
  ]);
  const head = `The daemon of ${config} runs: process ${pid}, junctor ${build}.`;
  const counted = clients.length === 0 ? ["No client is attached."] : ["Clients:", ...clients];
  return [head, ...counted, ...servers].map((line) => `${toSafeText(line)}\n`).join("");
}

/** Ends the daemon of a config when its calls are done. Its clients start the next one when they need it. */
export async function stopDaemon(place: RunPlace): Promise<number> {
  const stopped = (await ask(place, "stop")) as { readonly pid: number } | undefined;
  await print(
    stopped === undefined
      ? "no daemon runs\n"
      : `the daemon (process ${stopped.pid}) ends when its calls are done\n`,
  );
  return 0;
}

/** By then the daemon has answered, also for a server that does not start in time. */
const restartMs = 60_000;

/** Restarts one server of a daemon, for all its clients. Resolves with the exit code. */
export async function restartServerOf(
  { place, status }: { place: RunPlace; status: DaemonStatus },
  name: string,
): Promise<number> {
  const introduction = {
    build: readVersion(),
    pid: process.pid,
    id: "",
    control: "restart",
    server: name,
  } as const;
  const answer = await askDaemon(place, introduction, { answerMs: restartMs });
  if (answer === undefined)
    throw new UsageError(
      `the daemon (junctor ${status.build}) is too old to restart one server: ${junctor("restart")}, without a name, restarts it`,
    );
  const { servers, names } = answer as RestartedServer;
  if (names.length === 0)
    throw new UsageError("the daemon has no server yet: it starts them when the first client comes");
  if (servers.length === 0) {
    const hint = suggest(name, names, `there are ${names.join(", ")}`);
    throw new UsageError(`the daemon has no server ${JSON.stringify(name)}; ${hint}`);
  }
  const down = servers.find((server) => server.status !== "up");
  if (down === undefined) await print(`${toSafeLine(name)} is up\n`);
  else await note(`junctor: ${toSafeLine(`${name} is ${down.status}: ${down.trouble ?? ""}`)}\n`);
  return down === undefined ? 0 : 1;
}

/** Has a new daemon take the place of the one that runs, which ends when its calls are done. */
export async function restartDaemon(place: RunPlace, config: string): Promise<number> {
  const before = (await ask(place, "probe")) as { readonly pid: number } | undefined;
  const main = fileURLToPath(new URL("../cli/main.js", import.meta.url));
  const words = [main, "daemon", "--take-over", "--config", config];
  spawn(process.execPath, words, { detached: true, stdio: "ignore", cwd: homedir() }).unref();
  for (let attempt = 0; attempt < 100; attempt++) {
    const now = (await ask(place, "probe")) as { readonly pid: number } | undefined;
    if (now !== undefined && now.pid !== before?.pid) {
      await print(`the next daemon (process ${now.pid}) serves from now on\n`);
      return 0;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new UsageError(`no new daemon answered within 10 s: ${junctor("logs")} tells why`);
}
