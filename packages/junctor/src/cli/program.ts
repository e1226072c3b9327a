import { nearest } from "@junctor/core/options";
import { junctor } from "../invocation/index.ts";
import {
  type CommandName,
  commonFlags,
  describeCommand,
  describeProgram,
  guessCommand,
  type InnerCommandName,
  hideEnvironment,
  note,
  parseCommandLine,
  parseInfoFlag,
  type ParsedOf,
  print,
  rowOf,
  type Run,
  runCommand,
  toComplaint,
  UsageError,
} from "./terminal/index.ts";
import { readVersion } from "./version.ts";

type Loads = { readonly [Name in CommandName | InnerCommandName]: () => Promise<Run<Name>> };

/**
 * The functions of the commands. Each is loaded when it is wanted: `junctor serve --stdio` starts in half the time without the client, and
 * is started often.
 */
const loads: Loads = {
  serve: async () => (await import("./serve/serve.ts")).serve,
  attach: async () => (await import("./running/attach.ts")).attach,
  daemon: async () => (await import("./running/daemon.ts")).daemon,
  tools: async () => (await import("./call/tools.ts")).tools,
  call: async () => (await import("./call/call.ts")).call,
  cost: async () => (await import("./call/cost.ts")).cost,
  task: async () => (await import("./call/task.ts")).task,
  resources: async () => (await import("./call/listing.ts")).resources,
  prompts: async () => (await import("./call/listing.ts")).prompts,
  skills: async () => (await import("./call/listing.ts")).skills,
  login: async () => (await import("./login/login.ts")).login,
  logout: async () => (await import("./login/login.ts")).logout,
  logins: async () => (await import("./login/login.ts")).logins,
  check: async () => (await import("./check/check.ts")).check,
  config: async () => (await import("./check/config.ts")).config,
  why: async () => (await import("./check/why.ts")).why,
  status: async () => (await import("./running/status.ts")).status,
  top: async () => (await import("./running/top.ts")).top,
  usage: async () => (await import("./running/usage.ts")).usage,
  open: async () => (await import("./running/running.ts")).open,
  logs: async () => (await import("./running/logs.ts")).logs,
  restart: async () => (await import("./running/running.ts")).restart,
  approvals: async () => (await import("./running/approvals.ts")).approvals,
  reload: async () => (await import("./running/running.ts")).reload,
  trust: async () => (await import("./check/trust.ts")).trust,
  audit: async () => (await import("./check/audit.ts")).audit,
  service: async () => (await import("./clients/service.ts")).service,
  install: async () => (await import("./clients/install.ts")).install,
  uninstall: async () => (await import("./clients/install.ts")).uninstall,
  clients: async () => (await import("./clients/clients.ts")).listClients,
  import: async () => (await import("./clients/import.ts")).importServers,
  add: async () => (await import("./clients/server-entries.ts")).add,
  search: async () => (await import("./clients/registry-servers.ts")).search,
  remove: async () => (await import("./clients/server-entries.ts")).remove,
  enable: async () => (await import("./clients/server-entries.ts")).enable,
  disable: async () => (await import("./clients/server-entries.ts")).disable,
  stop: async () => (await import("./running/running.ts")).stop,
  completion: async () => (await import("./clients/completion.ts")).completion,
  explain: async () => (await import("./check/explain.ts")).explain,
  types: async () => (await import("./author/types.ts")).types,
  dev: async () => (await import("./author/dev.ts")).dev,
  record: async () => (await import("./author/record.ts")).record,
  replay: async () => (await import("./author/record.ts")).replay,
  diff: async () => (await import("./author/diff.ts")).diff,
  "serve-worker": async () => (await import("./serve/serve-worker.ts")).serveWorker,
  "renew-login": async () => (await import("./login/login.ts")).renewLogin,
};

async function main(args: readonly string[]): Promise<number> {
  const [word = "help", ...rest] = args;
  if (word === "complete") return (await import("./clients/completion.ts")).complete(rest);
  const info = parseInfoFlag(args);
  if (info === "version" || word === "version") return say(`${readVersion()}\n`);
  if (info === "help") return say((await describeOperand(word, rest)) ?? describeFirst(args));
  if (word === "help") return say(describeTopic(rest[0]));
  if (word.startsWith("-")) throw new UsageError(misplacedFlag(word, rest));
  if (!Object.hasOwn(loads, word)) throw new UsageError(unknownCommand(word));
  const run = await loads[word as keyof Loads]();
  const problem = hideEnvironment();
  if (problem !== undefined && word === "serve")
    await note(`junctor: warning: servers can read the variables of this process: ${problem}\n`);
  return runCommand(word, run, rest);
}

/** The help for the tool that `call` names; undefined where it names none or cannot be understood. */
async function describeOperand(word: string, rest: readonly string[]): Promise<string | undefined> {
  if (word !== "call") return undefined;
  let parsed: ParsedOf<"call">;
  try {
    parsed = parseCommandLine(rest, word) as ParsedOf<"call">;
  } catch {
    return undefined;
  }
  try {
    return await (await import("./call/call.ts")).describeCall(parsed);
  } catch (error) {
    // Help is shown also where the server cannot be asked.
    await note((await toComplaint(error)).text);
    return undefined;
  }
}

/** The help of the first command that is named, wherever that is; else of the whole program. */
function describeFirst(args: readonly string[]): string {
  return describeTopic(args.find((word) => rowOf(word) !== undefined));
}

function describeTopic(name: string | undefined): string {
  if (name === undefined || name === "help") return describeProgram();
  if (rowOf(name) === undefined) throw new UsageError(unknownCommand(name));
  return describeCommand(name);
}

function unknownCommand(word: string): string {
  const meant = guessCommand(word);
  const hint = meant === undefined ? `${junctor("help")} lists them` : `did you mean ${junctor(meant)}?`;
  return `there is no command ${JSON.stringify(word)}; ${hint}`;
}

/** For a command line that begins with a flag. */
function misplacedFlag(word: string, rest: readonly string[]): string {
  const flags = Object.keys(commonFlags).map((flag) => `--${flag}`);
  const meant = nearest(word.replace(/=.*$/s, ""), flags);
  if (meant !== undefined) return `unknown flag ${word}; did you mean ${meant}?`;
  const command = rest.find((other) => rowOf(other) !== undefined) ?? "COMMAND";
  return `the command comes before its flags: ${junctor(`${command} ${word}`)}; ${junctor("help")} lists the commands`;
}

async function say(text: string): Promise<number> {
  await print(text);
  return 0;
}

async function complain(error: unknown): Promise<number> {
  const { text, exitCode } = await toComplaint(error);
  await note(text);
  return exitCode;
}

/** Runs the command that a command line names. Resolves with the exit code. */
export function runProgram(args: readonly string[]): Promise<number> {
  // A closed output is not a reason to stop serving others.
  process.stderr.on("error", () => {});
  process.stdout.on("error", () => {});
  return main(args).catch(complain);
}
