import { realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { guardVariable } from "@junctor/client/internal";
import type { ServerReport, Status } from "../../admin/index.ts";
import { listRunPlaces, type RunPlace } from "../../attach/index.ts";
import { stateFolder, writePrivateFile } from "../../config/index.ts";
import type { DaemonStatus } from "../../daemon/index.ts";
import { junctor } from "../../invocation/index.ts";
import { isAccepted } from "../config/index.ts";
import {
  askAdmin,
  findAdmins,
  findGateways,
  showUnseen,
  takeEdit,
  type WaitingGateway,
} from "../serve/index.ts";
import {
  note,
  openAddress,
  print,
  refuseOperands,
  type Run,
  toSafeLine,
  UsageError,
} from "../terminal/index.ts";
import { askStatus, restartDaemon, restartServerOf, stopDaemon } from "./daemon-control.ts";

/** A process of a gateway of `junctor serve`, or a daemon of `junctor attach`, that runs for this user. */
export type Running =
  | { readonly kind: "gateway"; readonly socket: string; readonly status: Status }
  | { readonly kind: "daemon"; readonly place: RunPlace; readonly status: DaemonStatus };

/** Which gateway or daemon a command line means. */
interface WantedGateway {
  readonly config: string | undefined;
  readonly pid: string | undefined;
}

/** Everything that runs and fits, the daemons first, and workers in their order. The process number of a primary fits its workers. */
export async function findRunning({ config, pid }: WantedGateway): Promise<readonly Running[]> {
  if (process.platform === "win32")
    throw new UsageError(
      `this does not work on Windows; use ${junctor("daemon")}, or the admin API on its port, see docs/reference/admin-api.md`,
    );
  const [daemons, gateways] = await Promise.all([findDaemons(), findAdmins()]);
  const served = gateways
    .map((target): Running => ({ kind: "gateway", ...target }))
    .toSorted((one, other) => primaryOf(one) - primaryOf(other) || numberOf(one) - numberOf(other));
  const file = config === undefined ? undefined : toRealPath(config);
  return [...daemons, ...served].filter(
    (running) =>
      (file === undefined ||
        (running.status.config !== undefined && toRealPath(running.status.config) === file)) &&
      (pid === undefined || [running.status.pid, primaryOf(running)].includes(Number(pid))),
  );
}

/** The address of its admin page, with the key of this run if the config has none; undefined without a page. */
export function pageOf({ status }: Running): string | undefined {
  return "pageUrl" in status ? status.pageUrl : undefined;
}

function primaryOf({ kind, status }: Running): number {
  return (kind === "gateway" ? status.worker?.primary : undefined) ?? status.pid;
}

function numberOf({ kind, status }: Running): number {
  return (kind === "gateway" ? status.worker?.number : undefined) ?? 0;
}

/** The processes of the only one that runs: several if it has workers. Throws a `UsageError` that tells them apart when several run. */
export function onlyOne<One extends Running>(found: readonly One[]): readonly One[] {
  const byPrimary = new Map(found.map((running) => [primaryOf(running), running]));
  if (byPrimary.size < 2) return found;
  const named = [...byPrimary].map(
    ([pid, { kind, status }]) => `${pid} (the ${kind} of ${status.config ?? "the demo"})`,
  );
  throw new UsageError(`several run; write --pid with one of ${named.join(", ")}`);
}

/** Why a command has nothing to work on. */
export function nothingRuns({ config, pid }: WantedGateway): UsageError {
  const what = config === undefined && pid === undefined ? "" : " with that";
  return new UsageError(
    `no gateway and no daemon of yours runs${what}; ${junctor("serve")} starts one, and a client with ${junctor("attach")} the other`,
  );
}

async function findDaemons(): Promise<readonly Running[]> {
  const found = await Promise.all(
    listRunPlaces().map(async (place): Promise<readonly Running[]> => {
      const status = await askStatus(place);
      return status === undefined ? [] : [{ kind: "daemon", place, status }];
    }),
  );
  return found.flat();
}

export function isDaemon(running: Running): running is Running & { readonly kind: "daemon" } {
  return running.kind === "daemon";
}

/** `junctor open` */
export const open: Run<"open"> = async (parsed) => {
  refuseOperands("open", parsed);
  const wanted = { config: parsed.flags.config, pid: parsed.flags.pid };
  const found = await findRunning(wanted);
  if (found.length === 0) throw nothingRuns(wanted);
  const paged = found.filter((running) => pageOf(running) !== undefined);
  // Each worker has a page; the first one's is as good as any.
  const [first] = onlyOne(paged);
  const page = first && pageOf(first);
  if (page === undefined) throw noPage(found);
  if (!parsed.flags.print && hasBrowser() && (await openAddress(toSafeAddress(page)))) {
    await note(
      `Opened ${page.replace(/#.*/s, "")} in your browser; ${junctor("open")} --print shows its address.\n`,
    );
    return 0;
  }
  await print(`${page}\n`);
  return 0;
};

/**
 * The key of a page must not be an argument of a program, which every user of the machine can read. So the browser is given a file that leads
 * there. Whoever can read that can use the socket of the gateway beside it.
 */
function toSafeAddress(page: string): string {
  if (!page.includes("#")) return page;
  const file = join(stateFolder(), "gateways", "open.html");
  const target = page.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  writePrivateFile(
    file,
    `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=${target}"><a href="${target}">Junctor</a>\n`,
  );
  return pathToFileURL(file).href;
}

/** Over SSH there is usually no screen. */
function hasBrowser({ env, platform } = process): boolean {
  if (platform === "darwin" || platform === "win32") return true;
  return ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].some((name) => (env[name] ?? "") !== "");
}

function noPage([running]: readonly Running[]): UsageError {
  const { kind, status } = running ?? { kind: "gateway", status: { pid: 0 } };
  const why =
    kind === "daemon"
      ? "the daemon has no page"
      : 'its config says "admin": false, or it serves stdio or TCP';
  return new UsageError(
    `the ${kind} that runs (process ${status.pid}) has no page: ${why}; write "junctor": { "admin": { "port": 7781 } } in its config, and start it again`,
  );
}

/** `junctor reload` */
export const reload: Run<"reload"> = async (parsed) => {
  refuseOperands("reload", parsed);
  // A server that may run commands could run this one.
  if (process.env[guardVariable] !== undefined)
    throw new UsageError("a server of a gateway cannot agree for you; run this from a terminal of your own");
  if (process.platform === "win32")
    throw new UsageError("reload does not work on Windows; start serve again, or with --reload trust");
  const chosen = choose(await findGateways(), parsed.flags.config);
  let exitCode = 0;
  for (const gateway of chosen) if (!(await take(gateway, parsed.flags.yes))) exitCode = 1;
  return exitCode;
};

function choose(running: readonly WaitingGateway[], file: string | undefined): readonly WaitingGateway[] {
  const wanted = file === undefined ? undefined : toRealPath(file);
  const chosen = running.filter((gateway) => wanted === undefined || toRealPath(gateway.file) === wanted);
  if (chosen.length === 0)
    throw new UsageError(
      `no gateway of yours runs with ${file ?? "a config"}; ${junctor("serve")} starts one`,
    );
  const waiting = chosen.filter((gateway) => gateway.wrong !== "" || gateway.waiting.length > 0);
  if (wanted === undefined && waiting.length > 1)
    throw new UsageError(
      `several gateways have edits that wait; write --config with one of ${waiting.map(({ file: one }) => one).join(", ")}`,
    );
  return waiting.length === 0 ? chosen.slice(0, 1) : waiting;
}

async function take(gateway: WaitingGateway, isSure: boolean): Promise<boolean> {
  const { file, wrong, waiting } = gateway;
  if (wrong !== "") return fail(`${file} is not used: ${wrong}`);
  if (waiting.length === 0) {
    await print(`${toSafeLine(file)}: nothing waits\n`);
    return true;
  }
  await note(`Waits in ${toSafeLine(file)}:\n${waiting.map((one) => `  ${showUnseen(one)}\n`).join("")}`);
  if (!isSure && !(process.stdin.isTTY && process.stderr.isTTY))
    return fail("nothing was taken: on a terminal you are asked, and --yes takes it");
  if (!isSure && !(await isAccepted("Take it? (y/N): "))) return fail("nothing was taken");
  const problem = await takeEdit(gateway);
  if (problem !== undefined) return fail(`nothing was taken: ${problem}`);
  await print(`${toSafeLine(file)}: taken\n`);
  return true;
}

async function fail(text: string): Promise<boolean> {
  await note(`junctor: ${toSafeLine(text)}\n`);
  return false;
}

export function toRealPath(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return resolve(file); // It was removed meanwhile.
  }
}

/** `junctor restart` */
export const restart: Run<"restart"> = async (parsed) => {
  const [name, more] = parsed.operands;
  if (more !== undefined)
    throw new UsageError(`restart takes the name of one server; ${junctor("status")} lists them`);
  // A server that may run commands could run this one.
  if (process.env[guardVariable] !== undefined)
    throw new UsageError("a server of a gateway cannot restart others; run this from a terminal of your own");
  const wanted = { config: parsed.flags.config, pid: parsed.flags.pid };
  const found = await findRunning(wanted);
  if (found.length === 0) throw nothingRuns(wanted);
  return name === undefined ? restartOne(found) : restartServer(name, found);
};

async function restartOne(found: readonly Running[]): Promise<number> {
  const [daemon] = onlyOne(found.filter(isDaemon));
  if (daemon === undefined)
    throw new UsageError(
      `no daemon runs; for a gateway of ${junctor("serve")}, write the name of one server`,
    );
  return restartDaemon(daemon.place, daemon.status.config);
}

async function restartServer(name: string, found: readonly Running[]): Promise<number> {
  const chosen = onlyOne(found);
  const [daemon] = chosen.filter(isDaemon);
  if (daemon !== undefined) return restartServerOf(daemon, name);
  const gateways = chosen.filter((running) => running.kind === "gateway");
  const path = `/api/servers/${encodeURIComponent(name)}/restart`;
  let exitCode = 0;
  for (const { socket, status: gateway } of gateways) {
    const { status, trouble } = (await askAdmin(socket, "POST", path, {})) as ServerReport;
    const where = gateway.worker === undefined ? "" : ` in worker ${gateway.worker.number}`;
    if (status === "up") await print(`${toSafeLine(name)} is up${where}\n`);
    else await note(`junctor: ${toSafeLine(`${name} is ${status}${where}: ${trouble ?? ""}`)}\n`);
    if (status !== "up") exitCode = 1;
  }
  return exitCode;
}

/** `junctor stop` */
export const stop: Run<"stop"> = async (parsed) => {
  refuseOperands("stop", parsed);
  const found = await findRunning({ config: parsed.flags.config, pid: parsed.flags.pid });
  const [daemon] = onlyOne(found.filter(isDaemon));
  const gateways = found.flatMap(({ kind, status }) =>
    kind === "gateway" ? [status.worker?.primary ?? status.pid] : [],
  );
  for (const pid of new Set(gateways))
    await note(
      `junctor: the gateway of ${junctor("serve")} (process ${pid}) goes on: end it in its terminal, or with kill ${pid}\n`,
    );
  if (daemon !== undefined) return stopDaemon(daemon.place);
  await print("no daemon runs\n");
  return 0;
};
