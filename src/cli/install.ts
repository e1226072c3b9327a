import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { installByCommand, uninstallByCommand } from "../install/by-command.ts";
import { fileOf, readSection, type TextFile } from "../install/client-file.ts";
import { type ClientProgram, clients } from "../install/clients.ts";
import {
  applyInstall,
  applyUninstall,
  type InstallPlan,
  planInstall,
  planUninstall,
} from "../install/install.ts";
import { readLedger } from "../install/ledger.ts";
import { SpliceError } from "../install/splice-error.ts";
import { type Command, type Parsed, UsageError } from "./command.ts";
import { describeLauncher, warnOfPlace, writeLauncher } from "./launcher.ts";
import {
  assertOwnTerminal,
  clientOf,
  configOf,
  mayWrite,
  tellGateways,
  thisMachine,
  writeFlags,
} from "./own-terminal.ts";
import { note, print } from "./print.ts";
import { toSafeLine, toSafeText } from "./terminal-text.ts";
import { createHideInText, diffLines } from "./text-diff.ts";

/** `junctor install` */
export const install: Command = {
  name: "install",
  summary: "Put Junctor into clients: take over the servers they have, and write one entry for all of them.",
  operands: "CLIENT…",
  flags: {
    ...writeFlags,
    all: { help: "every client that is on this machine" },
    keep: { help: "leave the servers in the client's file, too" },
    project: { help: "the file of the project in this folder instead of the user's" },
    file: { value: "FILE", help: "another file of the client, such as that of a VS Code profile" },
  },
  examples: [
    "junctor install cursor --dry-run              show what would change",
    "junctor install --all                         every client there is",
  ],
  run: async (parsed) => {
    assertOwnTerminal();
    const chosen = chooseClients(parsed, (client) => isPresent(client));
    const warning = warnOfPlace();
    if (warning !== undefined) await note(`junctor: warning: ${warning}\n`);
    return each(chosen, parsed, (client) => installOne(client, parsed));
  },
};

/** `junctor uninstall` */
export const uninstall: Command = {
  name: "uninstall",
  summary: "Take Junctor out of clients, and give them back the servers they had.",
  operands: "CLIENT…",
  flags: { ...writeFlags, all: { help: "every client it was installed into" } },
  examples: ["junctor uninstall cursor", "junctor uninstall --all --yes"],
  run: async (parsed) => {
    assertOwnTerminal();
    const installed = new Set(readLedger().map(({ client }) => client));
    const chosen = chooseClients(parsed, ({ id }) => installed.has(id));
    return each(chosen, parsed, (client) => uninstallOne(client, parsed));
  },
};

function chooseClients(
  parsed: Parsed,
  isMeant: (client: ClientProgram) => boolean,
): readonly ClientProgram[] {
  const { operands } = parsed;
  if (parsed.has("all") === operands.length > 0)
    throw new UsageError(`name clients, or write --all; there are ${clients.map(({ id }) => id).join(", ")}`);
  const chosen = parsed.has("all") ? clients.filter(isMeant) : operands.map(clientOf);
  if (chosen.length === 0) throw new UsageError("no client was found; name one: junctor clients lists them");
  if (chosen.length > 1 && parsed.has("file")) throw new UsageError("--file is for one client; name one");
  return chosen;
}

/** One client that fails does not keep the others from being done. */
async function each(
  chosen: readonly ClientProgram[],
  parsed: Parsed,
  act: (client: ClientProgram) => Promise<void>,
): Promise<number> {
  let exitCode = 0;
  for (const client of chosen) {
    try {
      await act(client);
    } catch (error) {
      if (!(error instanceof SpliceError)) throw error;
      exitCode = 1;
      await note(`junctor: ${client.title}: ${toSafeLine(error.message)}\n`);
    }
  }
  if (!parsed.has("dry-run")) await tellGateways(configOf(parsed));
  return exitCode;
}

function isPresent(client: ClientProgram): boolean {
  const file = fileOf(client, thisMachine());
  return existsSync(file) || (dirname(file) !== thisMachine().home && existsSync(dirname(file)));
}

async function installOne(client: ClientProgram, parsed: Parsed): Promise<void> {
  const file = fileFor(client, parsed);
  const options = {
    place: thisMachine(),
    launcher: describeLauncher(),
    config: configOf(parsed),
    keeps: parsed.has("keep"),
    file,
  };
  const plan = await planInstall(client, options);
  await show(plan);
  if (plan.text === plan.file.text && plan.config.text === plan.config.file.text)
    return print(`${client.title}: nothing to do\n`);
  if (!(await mayWrite(parsed, `Write ${toSafeLine(plan.file.path)}?`))) return;
  writeLauncher();
  if (client.command !== undefined && file === undefined) installByCommand(plan);
  else applyInstall(plan);
  const count = plan.imported.size;
  await print(
    `${client.title}: installed${count === 0 ? "" : `, ${count} ${count === 1 ? "server" : "servers"} taken over`}; restart it\n`,
  );
}

function fileFor(client: ClientProgram, parsed: Parsed): string | undefined {
  if (!parsed.has("project")) return parsed.valueOf("file");
  if (client.project === undefined)
    throw new UsageError(`${client.title} has no file for projects; leave out --project`);
  return join(process.cwd(), client.project);
}

async function show({ client, file, text, config, imported, stays }: InstallPlan): Promise<void> {
  const ours = await readSection(ourConfig, config.file.path, config.file.text);
  const theirs = await readSection(client, file.path, file.text);
  const hide = createHideInText(secretsIn([...imported.values(), ours, theirs]));
  await showDiff(config.file, config.text, hide);
  await showDiff(file, text, hide);
  for (const [name, why] of stays) await note(`${toSafeLine(`${name} stays with the client: ${why}`)}\n`);
}

const ourConfig = { format: "json", section: "mcpServers" } as const;

async function showDiff(
  { path, text: before }: TextFile,
  after: string,
  hide: (text: string) => string,
): Promise<void> {
  if (before === after) return;
  const lines = diffLines(before, after).map((line) => `  ${toSafeText(hide(line))}\n`);
  await note(`${toSafeLine(path)}\n${lines.join("")}`);
}

const secretKeys = ["env", "envs", "environment", "headers", "http_headers", "auth", "oauth"];

/** The values of variables and headers anywhere in some servers: they are not shown. */
function secretsIn(value: unknown, isSecret = false): readonly string[] {
  if (typeof value !== "object" || value === null) return isSecret ? [String(value)] : [];
  return Object.entries(value).flatMap(([key, each]) =>
    secretsIn(each, isSecret || secretKeys.includes(key)),
  );
}

async function uninstallOne(client: ClientProgram, parsed: Parsed): Promise<void> {
  const entries = readLedger().filter((entry) => entry.client === client.id);
  if (entries.length === 0) throw new UsageError(`junctor is not installed in ${client.title}`);
  for (const entry of entries) {
    const restored = await planUninstall(client, entry);
    const { file, text = "", kind } = restored;
    await note(
      `${toSafeLine(file.path)}: ${kind === "restored" ? "as it was before" : "edited since, so only our part is taken out"}\n`,
    );
    const servers = await readSection(client, file.path, file.text);
    await showDiff(file, text, createHideInText(secretsIn([entry.removed, entry.replaced, servers])));
    if (!(await mayWrite(parsed, "Write it?"))) continue;
    if (client.command !== undefined && entry.backup === "") await uninstallByCommand(client, entry);
    else applyUninstall(restored);
    await print(`${client.title}: ${kind === "restored" ? "restored" : "merged"}\n`);
  }
}
