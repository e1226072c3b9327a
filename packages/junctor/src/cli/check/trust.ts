import { dirname, join, resolve } from "node:path";
import { connect, type QuestionHandlers } from "@junctor/client";
import { guardVariable } from "@junctor/client/internal";
import { waitFor } from "@junctor/core/async";
import { ConfigError } from "@junctor/core/errors";
import { suggest } from "@junctor/core/options";
import { startGateway } from "../../gateway/index.ts";
import { junctor } from "../../invocation/index.ts";
import { type Approved, type Lock, readLock, writeLock } from "../../lock/index.ts";
import type { ListedDefinitions } from "../../servers/index.ts";
import { toPatient, toMs } from "../call/index.ts";
import { isAccepted, type ConfigFile, findConfigFile, usualFiles } from "../config/index.ts";
import { openLogins } from "../login/index.ts";
import { describeChange, diffDefinitions } from "../serve/index.ts";
import {
  note,
  type ParsedOf,
  print,
  type Run,
  toSafeLine,
  UsageError,
  watchInterrupt,
} from "../terminal/index.ts";

/** `junctor trust` */
export const trust: Run<"trust"> = async (parsed) => {
  // A server that may run commands could run this one.
  if (process.env[guardVariable] !== undefined)
    throw new UsageError(
      "a server of a gateway cannot approve for you; run this from a terminal of your own",
    );
  const found = await findConfigFile(parsed);
  if (found === undefined)
    throw new UsageError(`name a config: --config FILE (there is no ${usualFiles.join(", ")} here)`);
  const file = found.config.lock?.file ?? join(dirname(resolve(found.file)), "junctor.lock");
  const before = await openLock(file);
  const wanted = findWanted(parsed, found);
  const listed = await listDefinitions(parsed, found, wanted);
  const next = toNext(before.lock, listed, parsed.operands.length === 0 ? found : undefined);
  const count = await showDiff(before.lock, next);
  for (const { server, marked } of listed)
    for (const name of new Set(marked))
      await note(
        `junctor: ${toSafeLine(`${server}: ${name}`)} cannot be approved: it contains [secret], which stands for a secret in the lock\n`,
      );
  const missing = listed.filter(({ definitions }) => definitions === undefined);
  for (const { server } of missing)
    await note(
      `junctor: ${server} could not be listed, and stays as it was approved: ${junctor("check")} says why\n`,
    );
  const exitCode = missing.length === 0 && listed.every(({ marked }) => marked.length === 0) ? 0 : 1;
  if (count === 0 && before.text !== undefined) {
    await note(`${file}: everything is as it was approved\n`);
    return exitCode;
  }
  if (!(await isApproved(parsed, count))) return 1;
  const { text } = await openLock(file);
  if (text !== before.text)
    throw new UsageError(`${file} was written by another program meanwhile; try again`);
  writeLock(file, next);
  await note(`${file} is written; a gateway that runs uses it after ${junctor("reload")}\n`);
  return exitCode;
};

async function openLock(file: string): Promise<{
  readonly lock: Lock;
  readonly text: string | undefined;
}> {
  const state = readLock(file);
  if (state.kind === "read") return state;
  if (state.kind === "unusable") throw new ConfigError(file, [{ path: "", message: state.message }]);
  if (state.kind === "damaged") await note(`junctor: warning: ${file} ${state.message}\n`);
  return { lock: new Map(), text: undefined };
}

function findWanted(
  { operands }: ParsedOf<"trust">,
  { file, config }: ConfigFile,
): ConfigFile["config"]["servers"] {
  const names = config.servers.map(({ name }) => name);
  const unknown = operands.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const hint = suggest(unknown, names, `it has ${names.join(", ") || "none"}`);
    throw new UsageError(`${file} has no server ${JSON.stringify(unknown)} that is in use; ${hint}`);
  }
  return config.servers.filter(({ name }) => operands.length === 0 || operands.includes(name));
}

async function listDefinitions(
  parsed: ParsedOf<"trust">,
  { file, config }: ConfigFile,
  wanted: ConfigFile["config"]["servers"],
): Promise<readonly ListedDefinitions[]> {
  const timeout = parsed.flags.timeout;
  const { servers, firstListMs } = toPatient(wanted, timeout === undefined ? undefined : toMs(timeout));
  using interruption = watchInterrupt();
  const bare = { ...config, servers, audit: undefined, lock: undefined, middleware: [] };
  await using gateway = await startGateway(bare, {
    file,
    firstListMs,
    unnamed: "trusted",
    logins: openLogins(),
  });
  await waitFor(gateway.ready, interruption);
  // A server may list other things on its connections for legacy callers, and for callers that can be asked.
  await using modern = await connect({ server: gateway.server }, { handlers });
  await using legacy = await connect({ server: gateway.server }, { handlers, revision: "2025-11-25" });
  for (const client of [modern, legacy])
    await waitFor(
      Promise.all([
        client.listTools(),
        client.listPrompts(),
        client.listResources(),
        client.listResourceTemplates(),
      ]),
      interruption,
    );
  const skip: readonly string[] = config.lock?.skip ?? [];
  return gateway.definitions().map(({ server, definitions, marked }) => {
    const pinned = definitions && new Map([...definitions].filter(([part]) => !skip.includes(part)));
    return { server, definitions: pinned, marked };
  });
}

/** A caller that declares everything it could be asked. */
const handlers: QuestionHandlers = {
  elicit: () => ({ action: "cancel" }),
  elicitUrl: () => ({ action: "cancel" }),
  sample: () => Promise.reject(new Error("There is no model here.")),
  roots: () => [],
};

/** The lock with what was listed. Servers that the config no longer has are forgotten when all of them were wanted. */
function toNext(before: Lock, listed: readonly ListedDefinitions[], all: ConfigFile | undefined): Lock {
  const next = new Map(before);
  for (const { server, definitions } of listed) if (definitions !== undefined) next.set(server, definitions);
  if (all === undefined) return next;
  const { servers, disabled } = all.config;
  const names = new Set([...servers, ...disabled].map(({ name }) => name));
  for (const name of before.keys()) if (!names.has(name)) next.delete(name);
  return next;
}

const nothingApproved: Approved = new Map();

/** Prints what differs, server by server. Returns how many definitions do. */
async function showDiff(before: Lock, next: Lock): Promise<number> {
  let count = 0;
  for (const server of [...new Set([...before.keys(), ...next.keys()])].toSorted()) {
    const changes = diffDefinitions(
      before.get(server) ?? nothingApproved,
      next.get(server) ?? nothingApproved,
    );
    if (changes.length === 0) continue;
    count += changes.length;
    await print(`${toSafeLine(server)}\n`);
    for (const change of changes) await print(describeChange(change));
  }
  return count;
}

async function isApproved(parsed: ParsedOf<"trust">, count: number): Promise<boolean> {
  if (parsed.flags.yes) return true;
  const [things, wait] = count === 1 ? ["1 definition", "waits"] : [`${count} definitions`, "wait"];
  if (process.stdin.isTTY && process.stderr.isTTY && (await isAccepted(`Approve ${things}? (y/N): `)))
    return true;
  await note(`nothing is approved: ${things} ${wait}; on a terminal you are asked, and --yes approves\n`);
  return false;
}
