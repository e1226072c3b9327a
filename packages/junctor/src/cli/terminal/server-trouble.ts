import { BrandedError } from "@junctor/core/errors";
import type { ListFault, ListPart } from "@junctor/core/fit";
import { nearest } from "@junctor/core/options";
import type { ServerLaunch } from "../../config/index.ts";
import { junctor } from "../../invocation/index.ts";
import type { Unapproved } from "../../lock/index.ts";
import { type ServerStatus, isTelling } from "../../servers/index.ts";

/** A server of a config that cannot be used, in words for a person. */
export class ServerTrouble extends BrandedError {
  protected static override readonly brand = "ServerTrouble";

  override readonly name = "ServerTrouble";
  readonly code = "cli.server_trouble";
}

/** The status of a server, and what to do about it. */
type Diagnosis = Pick<ServerStatus, "name" | "trouble" | "reason" | "said" | "stray"> & {
  readonly advice?: string | undefined;
};

/** What is wrong with a server, what it wrote, and what to do, on as many lines as that takes. */
export function describeTrouble({ name, trouble, reason, said, stray, advice }: Diagnosis): string {
  const indented = (text: string): readonly string[] => text.split("\n").map((line) => `    ${line}`);
  const shown = said === undefined ? [] : indented(said).filter(isTelling).slice(-10);
  return [
    `${name}: ${reason ?? trouble ?? "it works"}.`,
    ...(shown.length === 0 ? [] : ["  It wrote:", ...shown]),
    ...(stray === undefined
      ? []
      : ["  It wrote to its standard output, where only MCP messages belong:", ...indented(stray)]),
    ...(advice === undefined ? [] : [`  ${advice}`]),
  ].join("\n");
}

/** A server of a config that cannot be used: its status, and how the config says to reach it. */
interface FailedServer extends Pick<ServerStatus, "name" | "code" | "said" | "stray"> {
  readonly launch: ServerLaunch;
}

/** What usually helps against each kind of trouble, in the words of a config. */
const advice: { readonly [C in NonNullable<ServerStatus["code"]>]?: (server: FailedServer) => string } = {
  no_program: adviseOnProgram,
  no_folder: ({ launch }) =>
    `Its "cwd" is ${folderOf(launch)}, which is not a folder: create it, or correct "cwd".${homeHint(folderOf(launch))}`,
  not_executable: ({ launch }) =>
    `"command" is ${programOf(launch)}: write the path of a program; a script must be executable (chmod +x).`,
  exited: adviseOnEnd,
  lost: (server) =>
    server.launch.kind === "http"
      ? 'If it wants TLS, write https:// in its "url"; else see its own log.'
      : adviseOnEnd(server),
  no_answer: adviseOnSilence,
  starting: adviseOnSilence,
  refused: () => 'Start that server, or correct the host and port of its "url".',
  no_host: () => 'There is no such host: correct its "url".',
  unreachable: () => 'The network does not lead there: check its "url", and a VPN or firewall on the way.',
  certificate: () => "If you trust it, NODE_EXTRA_CA_CERTS=FILE names a file with its certificate.",
  no_tls: () => 'It may speak plain HTTP: write http:// in its "url", or correct the port.',
  login: ({ name }) => `LOGIN: ${junctor("login")} ${name}`,
  setup: ({ name }) =>
    `SETUP: its id goes into the config: "junctor": { "servers": { "${name}": { "oauth": { "clientId": "…" } } } }.`,
  wrong: () => "WRONG: a sign-in would fail; tell those who run the server or its authorization server.",
  unauthorized: adviseOnRefusal,
  no_endpoint: () => noEndpoint,
  not_mcp: () => noEndpoint,
  redirected: () =>
    'Write the address that it leads to as "url": redirects are not followed, because headers may hold keys.',
  too_many: () => "It had too many requests: try again later.",
  server_fault: () => "The server itself has a fault; see its own log.",
  not_listed: () => "The server is up and does not give that list; its other parts work.",
};

const noEndpoint = 'The "url" is not the address of an MCP endpoint; most end in /mcp or /sse.';

/** What to do about a server's trouble; undefined when only its own words can help. */
export function adviseOn(server: FailedServer): string | undefined {
  const { code, stray = "" } = server;
  if (code === undefined) return undefined;
  const isSilent = code === "exited" || code === "no_answer" || code === "starting" || code === "lost";
  if (stray !== "" && isSilent)
    return "This program writes other text to its standard output: it must write only MCP messages there. It may need other arguments.";
  return advice[code]?.(server);
}

/** Programs that start most servers. */
const programs = [
  "npx",
  "node",
  "npm",
  "uvx",
  "uv",
  "python",
  "python3",
  "docker",
  "bunx",
  "bun",
  "deno",
  "pnpm",
];

/** The program that a misspelt one was most likely meant to be. */
export function nearestProgram(command: string): string | undefined {
  return programs.includes(command) ? undefined : nearest(command, programs);
}

function adviseOnProgram({ launch }: FailedServer): string {
  if (launch.kind !== "command") return "";
  const { command } = launch;
  const [program = "", ...args] = command.split(" ");
  if (args.length > 0 && !/[/\\]/.test(program))
    return `"command" is the program alone: write "command": ${JSON.stringify(program)}, and ${JSON.stringify(args.join(" "))} as "args": [${args.map((arg) => JSON.stringify(arg)).join(", ")}].`;
  const meant = nearestProgram(command);
  if (meant !== undefined) return `Did you mean "command": ${JSON.stringify(meant)}?`;
  const what = command === "uvx" ? 'uv, which "uvx" is a part of' : JSON.stringify(command);
  return `Install ${what}, or write its whole path as "command".${homeHint(command)}`;
}

/** A shell fills in `~`, and no shell reads a config. */
function homeHint(path: string): string {
  return /(^|["/])~\//.test(path) ? " A config has no ~: write ${HOME}." : "";
}

/** Refused credentials need other advice than missing ones. */
function adviseOnRefusal({ launch }: FailedServer): string {
  const headers = launch.kind === "http" ? Object.entries(launch.headers) : [];
  if (headers.length === 0) return 'Give it credentials: "headers": { "Authorization": "Bearer ${TOKEN}" }.';
  const [, variable] = headers.map(([, value]) => /\$([A-Za-z_]\w*)/.exec(value)).find(Boolean) ?? [];
  if (variable !== undefined)
    return `"headers" names ${variable} without braces, so it is not filled in: write \${${variable}}.`;
  const names = headers.map(([name]) => name).join(", ");
  return `It refused the credentials of "headers" (${names}): the token is wrong, expired or for another server; get a new one.`;
}

/** What helps against a failure that a process wrote about: a broken install, a missing package or file, refused credentials. */
export function adviseOnWords(said: string): string | undefined {
  const [unfinished] = /ENOTEMPTY|Cannot find (?:module|package)/.test(said)
    ? (npxFolder.exec(said) ?? [])
    : [];
  if (unfinished !== undefined)
    return `npx was ended before it finished its install in ${unfinished}: remove that folder, and npx installs it again`;
  const [, name] =
    /404 +'?((?:@[\w.-]+\/)?[\w.-]+)@\S+ is not in (?:this|the npm) registry/.exec(said) ??
    /404 .*The requested resource '((?:@[\w.-]+\/)?[\w.-]+)@/.exec(said) ??
    [];
  if (name !== undefined)
    return `there is no package ${name} in the registry of npm, or it is private: correct its name`;
  const [, file] =
    /Cannot find module '(\/[^']+)'/.exec(said) ?? /can't open file '([^']+)'/.exec(said) ?? [];
  if (file === undefined) return undefined;
  return `there is no file ${file}: correct the path.${homeHint(file)}`;
}

/** Where npx installs packages, each list of packages in a folder of its own. */
const npxFolder = /(?:[A-Za-z]:\\[^'"()\n]*?|\/[^'"()\s]*?)[/\\]_npx[/\\][0-9a-f]{8,}/;

/** Whether a process says that its credentials were refused. */
export function isAboutCredentials(said: string): boolean {
  return /\b401\b|unauthori[sz]ed|bad credentials|(?:key|token|credentials?|password)\W.{0,20}\b(?:expired|revoked|invalid)|(?:expired|revoked|invalid|wrong)\b.{0,20}\b(?:key|token|credentials?|password)/i.test(
    said,
  );
}

function adviseOnEnd({ launch, said = "" }: FailedServer): string {
  const advised = adviseOnWords(said);
  if (advised !== undefined) return `${advised[0]?.toUpperCase()}${advised.slice(1).replace(/\.?$/, ".")}`;
  const env = launch.kind === "command" ? launch.env : {};
  const variable = findVariable(said, env);
  if (variable !== undefined)
    return `It seems to miss a variable: write "env": { "${variable}": "\${${variable}}" }, and set ${variable}.`;
  if (!isAboutCredentials(said)) return "Run its command by hand to see why it ends.";
  const names = Object.keys(env).filter((name) => /KEY|TOKEN|SECRET|PASS|CREDENTIAL/i.test(name));
  const where = names.length === 0 ? "where it keeps them" : `in "env" (${names.join(", ")})`;
  return `Its credentials were refused: get new ones, and write them ${where}.`;
}

function adviseOnSilence({ name }: FailedServer): string {
  return `It may need longer: --timeout SECONDS waits longer here, "startTimeoutMs" under junctor.servers.${name} does in the gateway.`;
}

/** A variable that a server says it misses, and is not given: servers get few of ours. */
export function findVariable(said: string, given: { readonly [name: string]: string }): string | undefined {
  return said
    .split("\n")
    .filter((line) => /\b(env\w*|variables?|no|not|needs?|set|missing|required|provided?)\b/i.test(line))
    .flatMap((line) => line.match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g) ?? [])
    .find((name) => !name.startsWith("ERR_") && !Object.hasOwn(given, name));
}

function programOf(launch: ServerLaunch): string {
  return launch.kind === "command" ? JSON.stringify(launch.command) : "it";
}

function folderOf(launch: ServerLaunch): string {
  return launch.kind === "command" ? JSON.stringify(launch.cwd) : "";
}

const nouns: { readonly [Part in ListPart]: string } = {
  tools: "tool",
  resources: "resource",
  templates: "resource template",
  prompts: "prompt",
};

/** The most reasons that are shown, and most names of one reason; `--json` has all. */
const maxShown = 10;

/** Texts about definitions that clients would refuse or that are not in the lock, and what the gateway did with them; empty if there are none. */
export function describeFaults({ name, leftOut = [], mended = [], unapproved = [] }: ServerStatus): string {
  return (
    describe(name, leftOut, "left out") +
    describe(name, mended, "mended") +
    describeUnapproved(name, unapproved)
  );
}

function describeUnapproved(server: string, unapproved: readonly Unapproved[]): string {
  const [first] = unapproved;
  if (first === undefined) return "";
  const things = unapproved.length === 1 ? "1 definition is" : `${unapproved.length} definitions are`;
  const done = first.isHeldBack ? ", and held back" : "";
  const names = unapproved.slice(0, maxShown).map(({ part, name, why }) => `${name || part} (${why})`);
  const more = unapproved.length > names.length ? ", …" : "";
  return `\n${server}: ${things} not approved${done}: ${names.join(", ")}${more}. ${junctor("trust")} shows and approves them.\n`;
}

function describe(server: string, faults: readonly ListFault[], done: string): string {
  if (faults.length === 0) return "";
  const parts = (Object.keys(nouns) as ListPart[]).flatMap((part) => {
    const { length } = faults.filter((fault) => fault.part === part);
    return length === 0 ? [] : [`${length} ${toNoun(part, length)}`];
  });
  const groups = groupByReason(faults);
  const lines = groups.slice(0, maxShown).map((group) => `  ${toLine(group)}\n`);
  const more = groups.length - lines.length;
  const rest = more === 0 ? "" : `  and ${more} more reasons; --json has all\n`;
  return `\n${server}: ${parts.join(", ")} ${done}, because clients would refuse the whole list:\n${lines.join("")}${rest}`;
}

/** Most servers make one mistake in all their tools. */
function groupByReason(faults: readonly ListFault[]): readonly (readonly [ListFault, ...ListFault[]])[] {
  const groups = new Map<string, [ListFault, ...ListFault[]]>();
  for (const fault of faults) {
    const key = `${fault.part} ${fault.reason}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [fault]);
    else group.push(fault);
  }
  return [...groups.values()];
}

function toLine(group: readonly [ListFault, ...ListFault[]]): string {
  const [{ part, reason }] = group;
  const names = group.slice(0, maxShown).map(({ name }) => name);
  const more = group.length - names.length;
  const rest = more === 0 ? "" : ` and ${more} more`;
  return `${toNoun(part, group.length)} ${names.join(", ")}${rest}: ${reason}`;
}

function toNoun(part: ListPart, count: number): string {
  return count === 1 ? nouns[part] : `${nouns[part]}s`;
}
