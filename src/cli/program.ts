import { suggest } from "../options/nearest.ts";
import {
  type Command,
  commonFlags,
  describeCommand,
  describeProgram,
  parseCommandLine,
  type Parsed,
  parseInfoFlag,
  UsageError,
} from "./command.ts";
import { toComplaint } from "./complaint.ts";
import { hideEnvironment } from "./hide-environment.ts";
import { note, print } from "./print.ts";
import { readVersion } from "./version.ts";

/** Loaded when they are wanted: `junctor serve --stdio` starts in half the time without the client, and is started often. */
const commands: { readonly [name: string]: () => Promise<Command> } = {
  serve: async () => (await import("./serve.ts")).serve,
  attach: async () => (await import("./attach.ts")).attach,
  daemon: async () => (await import("./daemon.ts")).daemon,
  tools: async () => (await import("./tools.ts")).tools,
  call: async () => (await import("./call.ts")).call,
  cost: async () => (await import("./cost.ts")).cost,
  task: async () => (await import("./task.ts")).task,
  resources: async () => (await import("./resources.ts")).resources,
  prompts: async () => (await import("./prompts.ts")).prompts,
  skills: async () => (await import("./skills.ts")).skills,
  login: async () => (await import("./login.ts")).login,
  logout: async () => (await import("./logout.ts")).logout,
  logins: async () => (await import("./logins.ts")).logins,
  check: async () => (await import("./check.ts")).check,
  why: async () => (await import("./why.ts")).why,
  status: async () => (await import("./status.ts")).status,
  logs: async () => (await import("./logs.ts")).logs,
  restart: async () => (await import("./restart.ts")).restart,
  reload: async () => (await import("./reload.ts")).reload,
  trust: async () => (await import("./trust.ts")).trust,
  audit: async () => (await import("./audit.ts")).audit,
  service: async () => (await import("./service.ts")).service,
  install: async () => (await import("./install.ts")).install,
  uninstall: async () => (await import("./install.ts")).uninstall,
  clients: async () => (await import("./clients.ts")).listClients,
  import: async () => (await import("./import.ts")).importServers,
  add: async () => (await import("./server-entries.ts")).add,
  remove: async () => (await import("./server-entries.ts")).remove,
  enable: async () => (await import("./server-entries.ts")).enable,
  disable: async () => (await import("./server-entries.ts")).disable,
  stop: async () => (await import("./stop.ts")).stop,
  completion: async () => (await import("./completion.ts")).completion,
};

/** Commands for our own processes; the help does not name them. */
const innerCommands: typeof commands = {
  "serve-worker": async () => (await import("./serve-worker.ts")).serveWorker,
  "renew-login": async () => (await import("./renew-login.ts")).renewLogin,
};

async function main(args: readonly string[]): Promise<number> {
  const [word = "help", ...rest] = args;
  if (word === "complete") return (await import("./complete.ts")).complete(rest, commands);
  const info = parseInfoFlag(args);
  if (info === "version") return say(`${readVersion()}\n`);
  if (info === "help") return say((await describeOperand(word, rest)) ?? (await describeFirst(args)));
  if (word === "help") return say(await describeTopic(rest[0]));
  const command = await loadCommand(word);
  const seen = hideEnvironment();
  if (seen !== undefined && word === "serve")
    await note(`junctor: warning: servers can read the variables of this process: ${seen}\n`);
  return command.run(parseCommandLine(rest, command));
}

async function loadCommand(word: string): Promise<Command> {
  const all = { ...commands, ...innerCommands };
  const load = Object.hasOwn(all, word) ? all[word] : undefined;
  if (load === undefined)
    throw new UsageError(word.startsWith("-") ? unknownFlag(word) : unknownCommand(word));
  return load();
}

/** The help for what a command line names, such as a tool; undefined where it names nothing or cannot be understood. */
async function describeOperand(word: string, rest: readonly string[]): Promise<string | undefined> {
  const command = Object.hasOwn(commands, word) ? await loadCommand(word) : undefined;
  if (command?.describe === undefined) return undefined;
  let parsed: Parsed;
  try {
    parsed = parseCommandLine(rest, command);
  } catch {
    return undefined;
  }
  try {
    return await command.describe(parsed);
  } catch (error) {
    // People who ask for help get some, also where a server cannot be asked.
    await note(toComplaint(error).text);
    return undefined;
  }
}

/** The help of the first command that is named, wherever that is; else of the whole program. */
function describeFirst(args: readonly string[]): Promise<string> {
  return describeTopic(args.find((word) => Object.hasOwn(commands, word)));
}

async function describeTopic(name: string | undefined): Promise<string> {
  if (name !== undefined && name !== "help") return describeCommand(await loadCommand(name));
  return describeProgram(await Promise.all(Object.values(commands).map((load) => load())));
}

function unknownCommand(word: string): string {
  const names = Object.keys(commands);
  const hint = suggest(word, [...names, "help"], `commands: ${names.join(", ")}`);
  return `unknown command ${JSON.stringify(word)}; ${hint}`;
}

function unknownFlag(word: string): string {
  const flags = Object.keys(commonFlags).map((flag) => `--${flag}`);
  const first = `a command comes first: ${Object.keys(commands).join(", ")}`;
  return `unknown flag ${word}; ${suggest(word.replace(/=.*$/s, ""), flags, first)}`;
}

async function say(text: string): Promise<number> {
  await print(text);
  return 0;
}

async function complain(error: unknown): Promise<number> {
  const { text, exitCode } = toComplaint(error);
  await note(text);
  return exitCode;
}

/** Runs the command that a command line names. Resolves with the exit code. */
export function runProgram(args: readonly string[]): Promise<number> {
  // A closed output is no reason to stop serving others.
  process.stderr.on("error", () => {});
  process.stdout.on("error", () => {});
  return main(args).catch(complain);
}
