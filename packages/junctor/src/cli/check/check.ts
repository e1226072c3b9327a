import { join } from "node:path";
import { styleText } from "node:util";
import { examineLogin } from "@junctor/client/internal";
import { type Clock, createDeferred, systemClock, waitFor } from "@junctor/core/async";
import { isLoopback } from "@junctor/core/channel";
import { failureCodeOf } from "@junctor/core/errors";
import { defined } from "@junctor/core/options";
import { signInAt } from "../../accounts/index.ts";
import { type CheckReport, reportCollision } from "../../admin/index.ts";
import {
  cacheFolder,
  type ConfigIssue,
  type GatewayConfig,
  hasCertificates,
  isOpen,
} from "../../config/index.ts";
import { toLoginTerms } from "../../credentials/index.ts";
import { type RunningGateway, startGateway } from "../../gateway/index.ts";
import { createHide, hideInData, secretsAt, silentLog } from "../../log/index.ts";
import { lastWordsOf, ListMemory, type ServerStatus, toReason, withLastWords } from "../../servers/index.ts";
import { toMeasureMs, toMs, toPatient } from "../call/index.ts";
import { findConfigFile, usualFiles } from "../config/index.ts";
import { openLogins } from "../login/index.ts";
import {
  adviseOn,
  clipLine,
  describeFaults,
  describeTrouble,
  note,
  print,
  refuseOperands,
  type Run,
  toSafeLine,
  toSafeText,
  UsageError,
  watchInterrupt,
} from "../terminal/index.ts";

/** `junctor check` */
export const check: Run<"check"> = async (parsed) => {
  refuseOperands("check", parsed);
  const found = await findConfigFile(parsed);
  if (found === undefined)
    throw new UsageError(`name a config: --config FILE (there is no ${usualFiles.join(", ")} here)`);
  const { file, config } = found;
  const timeout = parsed.flags.timeout;
  const timeoutMs = timeout === undefined ? undefined : toMs(timeout);
  const { servers, firstListMs } = toPatient(config.servers, timeoutMs);
  const isJson = parsed.flags.json;
  using interruption = watchInterrupt();
  const names = [...servers, ...config.disabled].map(({ name }) => name);
  using view = isJson ? undefined : createCheckView({ names, ...terminal(), clock: systemClock });
  await using gateway = await startGateway(
    { ...config, servers, audit: undefined },
    {
      file,
      firstListMs,
      logins: openLogins(),
    },
  );
  const onChecked = async (server: CheckedServer): Promise<void> => view?.add(server);
  const checked = await checkServers(gateway, {
    config,
    timeoutMs,
    firstListMs,
    view,
    onChecked,
    signal: interruption.signal,
  });
  await view?.end();
  const report = await toReport(found, gateway, checked);
  if (isJson) await print(`${JSON.stringify(report, undefined, 2)}\n`);
  else await show(report, checked, report.warnings.slice(config.warnings.length));
  const areIssuersFine = report.issuers?.every(({ reason }) => reason === undefined) ?? true;
  return areIssuersFine && report.servers.every(({ trouble }) => trouble === undefined) ? 0 : 1;
};

function terminal(): { readonly columns: number | undefined; readonly hasColors: boolean } {
  const { isTTY, columns } = process.stdout;
  return { columns: isTTY ? columns : undefined, hasColors: isTTY && process.stdout.hasColors() };
}

/** When only servers are left that made no progress for this long, the check ends without them. */
const stillMs = 15_000;

/** How often servers that are not known yet are looked at. */
const lookMs = 500;

interface CheckOptions {
  readonly config: GatewayConfig;
  /** How long the person wants to wait at most. */
  readonly timeoutMs: number | undefined;
  /** How long all of them are waited for. */
  readonly firstListMs: number;
  readonly view: Pick<CheckView, "wait"> | undefined;
  /** Called for each server when it is known. */
  readonly onChecked: (server: CheckedServer) => Promise<void>;
  readonly signal: AbortSignal;
  readonly clock?: Clock;
}

/**
 * Waits for every server to be listed or to fail, and examines each as soon as it is known. Ends early when none is left but
 * servers that show no sign of progress, unless the person said how long to wait. Rejects when the signal aborts.
 */
export async function checkServers(
  gateway: RunningGateway,
  options: CheckOptions,
): Promise<readonly CheckedServer[]> {
  const { config, timeoutMs, firstListMs, view, onChecked, signal, clock = systemClock } = options;
  const hide = createHide((server) => secretsAt(config, server));
  const startedAt = clock.now();
  const checked = new Map<string, CheckedServer>();
  const statusOf = (name: string): ServerStatus | undefined =>
    gateway.status().find((each) => each.name === name);
  const measure = createMeasure(gateway);
  const finish = async (status: ServerStatus): Promise<void> => {
    const measureMs = toMeasureMs(timeoutMs, clock.now() - startedAt);
    const latencyMs = status.status === "up" ? await measure(status.name, measureMs) : undefined;
    const shown = toChecked(await examineAccess(status, config), config, latencyMs);
    const server = hideInData(shown, (json) => hide(json, status.name));
    if (checked.has(server.name)) return;
    checked.set(server.name, server);
    await onChecked(server);
  };
  const names = gateway.status().map(({ name }) => name);
  const finished = Promise.all(
    names.map(async (name) => {
      await gateway.untilKnown(name);
      const status = statusOf(name);
      if (status === undefined || checked.has(name)) return;
      // It would be started again and again, and take the processor from those that are still starting.
      if (hasFailed(status)) void gateway.controls.stop(name);
      await finish(status);
    }),
  );
  const still = new Map<string, { readonly progress: string; readonly since: number }>();
  const isStill = ({ name }: ServerStatus): boolean => {
    const facts = gateway.controls.server(name);
    if (facts?.health.kind === "waiting") return false;
    const progress = `${facts?.health.kind} ${facts?.progress}`;
    const before = still.get(name);
    if (before?.progress !== progress) still.set(name, { progress, since: clock.now() });
    return before?.progress === progress && clock.now() - before.since >= stillMs;
  };
  const unknown = (): readonly ServerStatus[] => gateway.status().filter(({ name }) => !checked.has(name));
  const hopeless = createDeferred<void>();
  let isHopeless = false;
  const look = (): void => {
    const left = unknown();
    view?.wait(left);
    const areStill = left.map(isStill);
    isHopeless = timeoutMs === undefined && left.length > 0 && areStill.every(Boolean);
    if (isHopeless) return hopeless.resolve();
    stopLooking = clock.timer(lookMs, look);
  };
  let stopLooking = (): void => {};
  look();
  try {
    await waitFor(Promise.race([finished, hopeless.promise]), { ms: firstListMs, clock, signal });
  } finally {
    stopLooking();
  }
  for (const status of unknown()) await finish(isHopeless ? withoutProgress(status) : status);
  // A name that several servers list may have got another owner since.
  return names.flatMap((name) => {
    const server = checked.get(name);
    const { tools, resources, prompts } = statusOf(name) ?? {};
    return server === undefined ? [] : { ...server, ...defined({ tools, resources, prompts }) };
  });
}

/** Servers that are being started again have failed, too. */
function hasFailed({ status, reason }: ServerStatus): boolean {
  return status === "down" || (status === "starting" && reason !== undefined);
}

/** A server that is waited for no longer. */
function withoutProgress(status: ServerStatus): ServerStatus {
  if (status.trouble === undefined) return status;
  return {
    ...status,
    trouble: `${status.trouble}, without a sign of progress for ${stillMs / 1000} s`,
  };
}

/**
 * Measures how long servers take to answer, one after the other: otherwise each would be measured together with the work of the others. The
 * best of three counts, and one that is slow delays the next no longer than it must.
 */
function createMeasure(
  gateway: RunningGateway,
): (name: string, measureMs: number) => Promise<number | undefined> {
  let turn: Promise<unknown> = Promise.resolve();
  return (name, measureMs) => {
    const ask = async (): Promise<number | undefined> => gateway.measure(name, measureMs);
    const measured = turn.then(async () => {
      const first = await ask();
      if (first === undefined || first > slowMs) return first;
      return Math.min(first, (await ask()) ?? first, (await ask()) ?? first);
    });
    turn = waitFor(measured, { ms: 3 * slowMs });
    return measured;
  };
}

/** A server that answers later is measured once. */
const slowMs = 50;

async function toReport(
  { file, config }: { readonly file: string; readonly config: GatewayConfig },
  gateway: RunningGateway,
  servers: readonly CheckedServer[],
): Promise<CheckReport> {
  const hide = createHide(() => config.secrets);
  const warnings = [...config.warnings, ...gateway.unmatchedRules(), ...findAskingServers(config)];
  const issuers = (await gateway.probeIssuers()).map((issuer) => defined(issuer));
  const collisions = gateway.collisions().map(reportCollision);
  const found = { ...(issuers.length > 0 && { issuers }), collisions, warnings };
  return { file, servers, ...hideInData(found, hide) };
}

/** Warns of processes that several callers share and that are known to ask questions: one caller's call waits until another has answered. */
function findAskingServers(config: GatewayConfig): readonly ConfigIssue[] {
  const { keys, issuers, servers, remember } = config;
  const hasSeveral = keys.length > 1 || issuers.length > 0 || hasCertificates(config);
  if (!hasSeveral || !remember) return [];
  const folder = join(cacheFolder(), "lists");
  const memory = new ListMemory({ folder, hide: (text) => text, log: silentLog });
  return servers
    .filter(({ launch, sharing }) => launch.kind === "command" && sharing === "shared")
    .filter((server) => memory.hasAsked(server))
    .map(({ name }) => ({
      path: `junctor.servers.${name}.sharing`,
      message: `${name} asks its callers questions, and all of them share its process, so a call may wait until another caller has answered: write "perSession" to give each caller its own`,
    }));
}

/** A server that wants a sign-in may want something else first, which is found without signing in. */
async function examineAccess(status: ServerStatus, config: GatewayConfig): Promise<ServerStatus> {
  const server = config.servers.find(({ name }) => name === status.name);
  if (server === undefined || server.launch.kind !== "http") return status;
  const isOwn = server.credentials === "perCaller";
  const problem = isOwn ? findAccountProblem(config) : undefined;
  if (problem !== undefined) return { ...status, code: "setup", reason: problem, trouble: problem };
  if (status.code !== "login") return status;
  const { launch, oauth, name } = server;
  const origin = isOwn ? originOf(config) : undefined;
  const terms = toLoginTerms({
    server: new URL(launch.url),
    oauth,
    logins: openLogins(),
    owner: name,
    advice: "",
    ...(origin === undefined ? {} : signInAt(origin, name)),
  });
  try {
    await examineLogin(terms);
    return isOwn ? withAccounts(status) : status;
  } catch (error) {
    return { ...status, code: failureCodeOf(error), reason: toReason(error), trouble: toReason(error) };
  }
}

/** The origin of the pages on which callers connect their accounts; undefined where the config does not say. */
function originOf({
  http: { publicUrl, host = "127.0.0.1", port = 7780, tls },
}: GatewayConfig): string | undefined {
  if (publicUrl !== undefined) return new URL(publicUrl).origin;
  return isLoopback(host) ? `${tls === undefined ? "http" : "https"}://${host}:${port}` : undefined;
}

/** Why no caller could connect an account. */
function findAccountProblem(config: GatewayConfig): string | undefined {
  const origin = originOf(config);
  if (origin === undefined)
    return 'its callers connect accounts on a page, and the gateway does not know its own address: write "http": { "publicUrl": "https://gateway.example.com/mcp" }';
  const isLocal = isLoopback(new URL(origin).hostname.replaceAll(/[[\]]/g, ""));
  return isOpen(config) && !isLocal
    ? 'its callers have accounts of their own, and cannot be told apart: give them "keys", or name "issuers"'
    : undefined;
}

/** A server that works once its callers have connected their accounts. */
function withAccounts({ name, tools, resources, prompts }: ServerStatus): ServerStatus {
  return { name, status: "up", tools, resources, prompts, says: "each caller connects its own account" };
}

function toChecked(
  status: ServerStatus,
  { servers }: GatewayConfig,
  latencyMs: number | undefined,
): CheckedServer {
  const launch = servers.find(({ name }) => name === status.name)?.launch;
  const advice = launch === undefined ? undefined : adviseOn({ ...status, launch });
  const rounded = latencyMs === undefined ? undefined : Math.round(latencyMs * 10) / 10;
  // A server that has failed is not "starting", though the gateway would start it again.
  const state = hasFailed(status) ? ({ status: "down" } as const) : {};
  return { ...status, ...state, ...defined({ latencyMs: rounded, advice }) };
}

/** Warnings about the config were printed when it was read; `unmatched` is the rest. */
async function show(
  { file, issuers = [], collisions }: CheckReport,
  servers: readonly CheckedServer[],
  unmatched: readonly ConfigIssue[],
): Promise<void> {
  for (const server of servers)
    if (server.trouble !== undefined || server.stray !== undefined)
      await print(`\n${toSafeText(describeTrouble(server))}\n`);
  for (const server of servers) await print(toSafeText(describeFaults(server)));
  for (const { name, issuer, reason } of issuers)
    await print(
      toSafeText(`\nissuer ${name}: ${reason === undefined ? `ok, ${issuer}` : `WRONG: ${reason}`}\n`),
    );
  for (const { advice } of collisions) await print(toSafeText(`\n${advice}.\n`));
  for (const { path, message } of unmatched) await print(toSafeText(`\nwarning: ${path}: ${message}\n`));
  const fine = servers.filter(({ trouble }) => trouble === undefined).length;
  await note(`${file}: ${fine} of ${servers.length} servers are fine\n`);
}

/** A server, how long it takes to answer, and what to do if something is wrong with it. */
interface CheckedServer extends ServerStatus {
  readonly latencyMs?: number;
  readonly advice?: string;
}

/** Shows servers one by one, as they are known. */
export interface CheckView extends Disposable {
  /** A server is known. */
  add(server: CheckedServer): Promise<void>;
  /** Servers that are not known yet. */
  wait(servers: readonly ServerStatus[]): void;
  /** Everything is known: nothing that changes is shown from now on. */
  end(): Promise<void>;
}

interface CheckViewOptions {
  /** All servers of the config, for the widths of columns. */
  readonly names: readonly string[];
  /** The width of the terminal; undefined where the output is not a terminal, and lines that were written stay. */
  readonly columns: number | undefined;
  readonly hasColors: boolean;
  readonly clock: Clock;
  readonly write?: (text: string) => Promise<void>;
  /** For what is not part of the result. */
  readonly tell?: (text: string) => Promise<void>;
}

/** How often a reader of a pipe is reminded of servers that are still waited for. */
const reminderMs = 15_000;

/** The most servers that are shown while they are waited for. */
const maxWaiting = 6;

/** Longest name that is shown whole, by the width of the terminal. */
const maxNameLength = (columns = Number.POSITIVE_INFINITY): number => (columns < 100 ? 16 : 32);

/** Moves to the line above and clears it. To clear the rest of the screen at once would leave it in the history of some terminals. */
const eraseLine = "\u001b[1A\u001b[2K";

/** A line for each server as it comes; on a terminal, below them, the servers that are waited for, and why. */
export function createCheckView(options: CheckViewOptions): CheckView {
  const { names, columns, hasColors, clock, write = print, tell = note } = options;
  const nameWidth = Math.max(
    6,
    ...names.map((name) => Math.min(maxNameLength(columns), toSafeLine(name).length)),
  );
  const fit = (line: string): string => (columns === undefined ? line : clipLine(line, columns - 1));
  const startedAt = clock.now();
  let left: readonly ServerStatus[] = [];
  let shownLines = 0;
  let hasHead = false;
  let remindsAt = startedAt + reminderMs;

  const erase = (): string => eraseLine.repeat(shownLines);
  const waitingLines = (): readonly string[] => {
    if (columns === undefined || left.length === 0) return [];
    const seconds = Math.floor((clock.now() - startedAt) / 1000);
    const title = `Waiting for ${left.length} of ${names.length} servers, ${seconds} s`;
    const shown = left.slice(0, left.length > maxWaiting ? maxWaiting - 1 : maxWaiting);
    const rows = shown.map((server) => `  ${toName(server.name, nameWidth)}  ${waitsFor(server)}`);
    const more = left.length - shown.length;
    const lines = ["", title, ...rows, ...(more === 0 ? [] : [`  and ${more} more`])];
    return lines.map((line) => (hasColors ? styleText("dim", fit(line)) : fit(line)));
  };
  const draw = (above: string): Promise<void> => {
    const lines = waitingLines();
    const text = `${erase()}${above}${lines.map((line) => `${line}\n`).join("")}`;
    shownLines = lines.length;
    return text === "" ? Promise.resolve() : write(text);
  };
  const paint = (row: string, server: CheckedServer): string => {
    if (!hasColors) return row;
    const color = server.trouble === undefined ? "green" : isAsked(server) ? "yellow" : "red";
    return `${styleText(color, row.slice(0, 1))}${row.slice(1)}`;
  };
  const headOnce = (): string => {
    if (hasHead) return "";
    hasHead = true;
    const heads = fit([`  ${toName("server", nameWidth)}`, ...head].join("  "));
    return `${hasColors ? styleText("bold", heads) : heads}\n`;
  };

  return {
    add: (server) => {
      left = left.filter(({ name }) => name !== server.name);
      return draw(`${headOnce()}${paint(fit(toLine(server, nameWidth)), server)}\n`);
    },
    wait: (servers) => {
      left = servers;
      if (columns !== undefined) return void draw("");
      if (clock.now() < remindsAt || servers.length === 0) return;
      remindsAt = clock.now() + reminderMs;
      const waiting = servers.map((server) => `${server.name} (${waitsFor(server)})`).join(", ");
      void tell(`junctor: still waiting for ${toSafeLine(waiting)}\n`);
    },
    end: async () => {
      left = [];
      await draw("");
    },
    [Symbol.dispose]: () => {
      left = [];
      void draw("");
    },
  };
}

const head = ["state   ", "revision  ", "tools", " start", "  ping", "it says it is"] as const;

/** A server that does not work has a reason where others have figures, so that the reason is seen on a narrow terminal. */
function toLine(server: CheckedServer, nameWidth: number): string {
  const { name, revision = "–", tools, connectMs, latencyMs, says = "", trouble, reason, said = "" } = server;
  const mark = trouble === undefined ? "✓" : isAsked(server) ? "!" : "✗";
  const begin = [`${mark} ${toName(name, nameWidth)}`, toState(server).padEnd(8)];
  const time = (ms: number | undefined): string => (ms === undefined ? "–" : toTime(ms)).padStart(6);
  const rest =
    trouble === undefined
      ? [revision.padEnd(10), String(tools).padStart(5), time(connectMs), time(latencyMs), says]
      : [reason === undefined ? trouble : withLastWords({ reason, said })];
  return [...begin, ...rest.slice(0, -1), toSafeLine(rest.at(-1) ?? "")].join("  ").trimEnd();
}

function toName(name: string, width: number): string {
  return clipLine(toSafeLine(name), width).padEnd(width);
}

/** States that a person has to act on. */
const asked: { readonly [Code in NonNullable<ServerStatus["code"]>]?: string } = {
  login: "LOGIN",
  setup: "SETUP",
  wrong: "WRONG",
};

function isAsked({ code, status }: ServerStatus): boolean {
  return status === "disabled" || (code !== undefined && asked[code] !== undefined);
}

function toState({ code, status, trouble }: ServerStatus): string {
  const state = code === undefined ? undefined : asked[code];
  if (state !== undefined) return state;
  return status === "up" && trouble !== undefined ? "no list" : status === "down" ? "failed" : status;
}

/** A duration in three digits. */
function toTime(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 100_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`;
}

/** Why a server is not known yet: its trouble, and its latest words. */
function waitsFor({ trouble = "", said = "" }: ServerStatus): string {
  const words = lastWordsOf(said);
  return toSafeLine(words === undefined ? trouble : `${trouble}: ${words}`);
}
