import { chmodSync, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { homeFolder } from "../../attach/index.ts";
import { writePrivateFile } from "../../config/index.ts";
import {
  applyInstall,
  applyUninstall,
  type ClientProgram,
  clients,
  type ConfigEdit,
  fileOf,
  installByCommand,
  type InstallPlan,
  type Launcher,
  type OurEntry,
  ourName,
  planInstall,
  planUninstall,
  readLedger,
  readOurServers,
  readSection,
  SpliceError,
  type TextFile,
  uninstallByCommand,
} from "../../install/index.ts";
import { junctor } from "../../invocation/index.ts";
import {
  createHideInText,
  diffLines,
  note,
  type ParsedOf,
  print,
  type Run,
  toRows,
  toSafeLine,
  toSafeText,
  UsageError,
} from "../terminal/index.ts";
import {
  assertOwnTerminal,
  clientOf,
  configOf,
  mayWrite,
  tellGateways,
  thisMachine,
} from "./own-terminal.ts";
import { describeEntry } from "./server-entries.ts";

/** `junctor install` */
export const install: Run<"install"> = async (parsed) => {
  assertOwnTerminal();
  const chosen = chooseClients(parsed, (client) => isPresent(client));
  const warning = warnOfPlace();
  if (warning !== undefined) await note(`junctor: warning: ${warning}\n`);
  return parsed.flags["dry-run"]
    ? previewAll(chosen, parsed)
    : forEachClient(chosen, parsed, (client) => installOne(client, parsed));
};

/** `junctor uninstall` */
export const uninstall: Run<"uninstall"> = async (parsed) => {
  assertOwnTerminal();
  const installed = new Set(readLedger().map(({ client }) => client));
  const chosen = chooseClients(parsed, ({ id }) => installed.has(id));
  return forEachClient(chosen, parsed, (client) => uninstallOne(client, parsed));
};

function chooseClients(
  parsed: ParsedOf<"install" | "uninstall">,
  isMeant: (client: ClientProgram) => boolean,
): readonly ClientProgram[] {
  const { operands } = parsed;
  if (parsed.flags.all === operands.length > 0)
    throw new UsageError(`name clients, or write --all; there are ${clients.map(({ id }) => id).join(", ")}`);
  const chosen = parsed.flags.all ? clients.filter(isMeant) : operands.map(clientOf);
  if (chosen.length === 0)
    throw new UsageError(`no client was found; name one: ${junctor("clients")} lists them`);
  if (chosen.length > 1 && "file" in parsed.flags && parsed.flags.file !== undefined)
    throw new UsageError("--file is for one client; name one");
  return chosen;
}

/** A client that fails does not stop the others. */
async function forEachClient(
  chosen: readonly ClientProgram[],
  parsed: ParsedOf<"install" | "uninstall">,
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
  if (!parsed.flags["dry-run"]) await tellGateways(configOf(parsed));
  return exitCode;
}

function isPresent(client: ClientProgram): boolean {
  const file = fileOf(client, thisMachine());
  return existsSync(file) || (dirname(file) !== thisMachine().home && existsSync(dirname(file)));
}

function planOne(
  client: ClientProgram,
  parsed: ParsedOf<"install">,
  pending?: TextFile,
): Promise<InstallPlan> {
  return planInstall(client, {
    place: thisMachine(),
    launcher: describeLauncher(),
    config: configOf(parsed),
    keeps: parsed.flags.keep,
    file: fileFor(client, parsed),
    pending,
  });
}

/** Shows what an installation would do: a block for each client, and our config as all of them would leave it. */
async function previewAll(chosen: readonly ClientProgram[], parsed: ParsedOf<"install">): Promise<number> {
  const before = new Set(Object.keys(readOurServers(configOf(parsed))));
  let config: ConfigEdit | undefined;
  let secrets: readonly string[] = [];
  const exitCode = await forEachClient(chosen, parsed, async (client) => {
    const pending = config && { ...config.file, text: config.text, exists: true };
    const plan = await planOne(client, parsed, pending);
    config = plan.config;
    secrets = [...secrets, ...secretsIn([...plan.imported.values()])];
    await print(describePlan(plan));
  });
  if (config === undefined) return exitCode;
  const { file, text } = config;
  const servers = Object.entries(
    (await readSection(ourConfig, file.path, text)) as { [name: string]: OurEntry },
  );
  const { servers: settings = {} } = (await readSection(
    { format: "json", section: "junctor" },
    file.path,
    text,
  )) as {
    servers?: { [name: string]: { sharing?: string } };
  };
  const hide = createHideInText([...secrets, ...secretsIn(Object.fromEntries(servers))]);
  const rows = servers.map(([name, entry]) => [
    before.has(name) ? "" : "+",
    name,
    hide(describeEntry(entry)),
    [
      entry.disabled === true ? "off" : "",
      settings[name]?.sharing === "perSession" ? "a process for each session" : "",
    ]
      .filter(Boolean)
      .join(", "),
  ]);
  const lines = rows.length === 0 ? ["no servers"] : toRows(rows);
  await print(`${toSafeLine(file.path)} would have:\n${lines.map((line) => `  ${line}\n`).join("")}`);
  await note("Nothing was written.\n");
  return exitCode;
}

/** What an installation would do to one client, without the lines of its file. */
function describePlan({
  client,
  file,
  text,
  config,
  imported,
  dropped,
  stays,
  removed,
}: InstallPlan): string {
  const taken = [...imported.keys()].map((name) => {
    const own = config.names.get(name) ?? name;
    const isNew = config.added.includes(own);
    const facts = [
      own === name ? "" : `as "${own}"`,
      isNew ? "" : config.enabled.includes(own) ? "known, now on" : "known",
      Object.hasOwn(removed, name) ? "" : "stays in the file, too",
    ];
    const shown = facts.filter(Boolean).join(", ");
    return `takes over "${name}"${shown === "" ? "" : ` (${shown})`}`;
  });
  const lines = [
    ...taken,
    ...Array.from(
      dropped,
      ([name, keys]) => `settings of "${name}" that are not carried over: ${keys.join(", ")}`,
    ),
    ...Array.from(stays, ([name, why]) => `leaves "${name}" with the client: ${why}`),
    text === file.text ? "has nothing to write" : `writes the entry "${ourName}"`,
  ];
  const head = `${client.title}: ${file.path}`;
  return `${[head, ...lines.map((line) => `  ${toSafeLine(line)}`)].join("\n")}\n`;
}

async function installOne(client: ClientProgram, parsed: ParsedOf<"install">): Promise<void> {
  const file = fileFor(client, parsed);
  const plan = await planOne(client, parsed);
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

function fileFor(client: ClientProgram, parsed: ParsedOf<"install">): string | undefined {
  if (!parsed.flags.project) return parsed.flags.file;
  if (client.project === undefined)
    throw new UsageError(`${client.title} has no file for projects; leave out --project`);
  return join(process.cwd(), client.project);
}

async function show({ client, file, text, config, imported, dropped, stays }: InstallPlan): Promise<void> {
  const ours = await readSection(ourConfig, config.file.path, config.file.text);
  const theirs = await readSection(client, file.path, file.text);
  const hide = createHideInText(secretsIn([...imported.values(), ours, theirs]));
  await showDiff(config.file, config.text, hide);
  await showDiff(file, text, hide);
  for (const [name, keys] of dropped)
    await note(`${toSafeLine(`${name}: not carried over: ${keys.join(", ")}`)}\n`);
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

async function uninstallOne(client: ClientProgram, parsed: ParsedOf<"uninstall">): Promise<void> {
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

const main = (): string => fileURLToPath(new URL("../cli/main.js", import.meta.url));

/** How clients start us. On Windows a script would need a shell, so clients start Node itself there. */
export function describeLauncher(): Launcher {
  if (process.platform === "win32") return { command: process.execPath, args: [main()] };
  return { command: join(homeFolder(), "bin", "junctor"), args: [] };
}

/**
 * Writes the launcher: it knows the Node it was installed with, and adds the search path of this terminal behind that of the client,
 * because desktop programs are started with a short one, in which `npx` is not found.
 */
export function writeLauncher(): void {
  if (process.platform === "win32") return;
  const { command } = describeLauncher();
  const lines = [
    "#!/bin/sh",
    `# Written by "${junctor("install")}".`,
    `node=${quote(process.execPath)}`,
    '[ -x "$node" ] || node=node',
    `PATH="$PATH":${quote(process.env["PATH"] ?? "")}`,
    "export PATH",
    `exec "$node" ${quote(main())} "$@"`,
    "",
  ];
  writePrivateFile(command, lines.join("\n"), 0o700);
  chmodSync(command, 0o700);
}

/** npx removes what it downloaded, sooner or later. */
function warnOfPlace(): string | undefined {
  return /[/\\]_npx[/\\]/.test(main())
    ? "junctor runs from the cache of npx, which is emptied now and then: run npm install --global with its folder or tarball, then install again"
    : undefined;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
