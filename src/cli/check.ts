import { waitFor } from "../async/clock.ts";
import type { IssuerHealth } from "../auth/in/probe.ts";
import { examineLogin } from "../auth/out/login.ts";
import { failureCodeOf } from "../errors/failure-code.ts";
import { signInAt } from "../gateway/accounts/links.ts";
import { isOpen } from "../gateway/config-access.ts";
import type { ConfigIssue, GatewayConfig } from "../gateway/config/config.ts";
import { toLoginTerms } from "../gateway/credentials/server-authorizer.ts";
import { startGateway } from "../gateway/gateway.ts";
import type { RunningGateway } from "../gateway/running-gateway.ts";
import { createHide, hideInData } from "../gateway/safe-log.ts";
import type { ServerStatus } from "../gateway/status.ts";
import { toReason } from "../gateway/upstream/to-reason.ts";
import { defined } from "../options/defined.ts";
import { type Collision, describeCollision } from "../tools/compose/claims.ts";
import { isLoopback } from "../transports/loopback.ts";
import { type Command, UsageError, configFlags, refuseOperands } from "./command.ts";
import { findConfigFile, usualFiles } from "./config-file.ts";
import { watchInterrupt } from "./interrupt.ts";
import { openLogins } from "./logins-store.ts";
import { toMeasureMs, toPatient } from "./patience.ts";
import { note, print } from "./print.ts";
import { adviseOn, describeFaults, describeTrouble } from "./server-trouble.ts";
import { toMs } from "./target.ts";
import { toRows, toSafeText } from "./terminal-text.ts";

/** A server, how long it takes to answer, and what to do if something is wrong with it. */
interface CheckedServer extends ServerStatus {
  readonly latencyMs?: number;
  readonly advice?: string;
}

/** Everything a check finds; `--json` prints it. */
interface Report {
  readonly file: string;
  readonly servers: readonly CheckedServer[];
  /** The issuers of tokens, and why tokens of one will be refused. */
  readonly issuers?: readonly IssuerHealth[];
  /** Names that several servers claim. */
  readonly collisions: readonly Collision[];
  /** Odd settings of the config, and rules that match nothing. */
  readonly warnings: readonly ConfigIssue[];
}

/** `junctor check` */
export const check: Command = {
  name: "check",
  summary:
    "Check a config: start or reach every server, and say what each speaks, offers, and what is wrong.",
  flags: {
    ...configFlags,
    json: { help: "the same as one JSON object: file, servers, issuers, collisions, warnings" },
    timeout: {
      value: "SECONDS",
      help: "how long servers may take to start and list their tools (default 5m, each while it makes progress)",
    },
  },
  examples: [
    "junctor check --config .mcp.json",
    "junctor check --config .mcp.json --timeout 2m               servers that npx has yet to install",
    "junctor check --config mcp.json --json | jq .",
  ],
  run: async (parsed) => {
    refuseOperands("check", parsed);
    const found = await findConfigFile(parsed);
    if (found === undefined)
      throw new UsageError(`name a config: --config FILE (there is no ${usualFiles.join(", ")} here)`);
    const { file, config } = found;
    const timeout = parsed.valueOf("timeout");
    const timeoutMs = timeout === undefined ? undefined : toMs(timeout);
    const { servers, firstListMs } = toPatient(config.servers, timeoutMs);
    const startedAt = performance.now();
    using interruption = watchInterrupt();
    await using gateway = await startGateway(
      { ...config, servers, audit: undefined },
      {
        file,
        firstListMs,
        logins: openLogins(),
      },
    );
    await waitFor(gateway.ready, interruption);
    const measureMs = toMeasureMs(timeoutMs, performance.now() - startedAt);
    const report = await examine(found, gateway, measureMs);
    if (parsed.has("json")) await print(`${JSON.stringify(report, undefined, 2)}\n`);
    else await show(report, report.warnings.slice(config.warnings.length));
    const areIssuersFine = report.issuers?.every(({ reason }) => reason === undefined) ?? true;
    return areIssuersFine && report.servers.every(({ trouble }) => trouble === undefined) ? 0 : 1;
  },
};

async function examine(
  { file, config }: { readonly file: string; readonly config: GatewayConfig },
  gateway: RunningGateway,
  measureMs: number,
): Promise<Report> {
  const servers = await Promise.all(
    gateway.status().map(async (status) => {
      const latencyMs = await gateway.measure(status.name, measureMs);
      return toChecked(await examineAccess(status, config), config, latencyMs);
    }),
  );
  const hide = createHide(() => config.secrets);
  const warnings = [...config.warnings, ...gateway.unmatchedRules()];
  const issuers = await gateway.probeIssuers();
  const more = issuers.length === 0 ? {} : { issuers };
  return { file, ...hideInData({ servers, ...more, collisions: gateway.collisions(), warnings }, hide) };
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

/** Where the pages are on which callers connect their accounts; undefined where the config does not say. */
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
  return { ...status, ...defined({ latencyMs: rounded, advice }) };
}

/** Warnings about the config were printed when it was read; `unmatched` is the rest. */
async function show(
  { file, servers, issuers = [], collisions }: Report,
  unmatched: readonly ConfigIssue[],
): Promise<void> {
  const head = ["server", "state", "era", "revision", "tools", "start", "latency", "it says it is"];
  await print(`${toRows([head, ...servers.map(toRow)]).join("\n")}\n`);
  for (const server of servers)
    if (server.trouble !== undefined || server.stray !== undefined)
      await print(`\n${toSafeText(describeTrouble(server))}\n`);
  for (const server of servers) await print(toSafeText(describeFaults(server)));
  for (const { name, issuer, reason } of issuers)
    await print(
      toSafeText(`\nissuer ${name}: ${reason === undefined ? `ok, ${issuer}` : `WRONG: ${reason}`}\n`),
    );
  for (const collision of collisions) await print(toSafeText(`\n${describeCollision(collision)}.\n`));
  for (const { path, message } of unmatched) await print(toSafeText(`\nwarning: ${path}: ${message}\n`));
  const fine = servers.filter(({ trouble }) => trouble === undefined).length;
  await note(`${file}: ${fine} of ${servers.length} servers are fine\n`);
}

/** What a person has to do something about. */
const words: { readonly [Code in NonNullable<ServerStatus["code"]>]?: string } = {
  login: "LOGIN",
  setup: "SETUP",
  wrong: "WRONG",
};

function toRow(status: CheckedServer): readonly string[] {
  const { name, era = "–", revision = "–", tools, connectMs, latencyMs, says = "" } = status;
  const ms = (value: number | undefined): string => (value === undefined ? "–" : `${value} ms`);
  const state = status.code === undefined ? undefined : words[status.code];
  return [name, state ?? status.status, era, revision, String(tools), ms(connectMs), ms(latencyMs), says];
}
