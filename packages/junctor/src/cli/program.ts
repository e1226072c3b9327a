import { nearest } from "@junctor/core/options";
import {
  type Command,
  commonFlags,
  describeCommand,
  describeProgram,
  parseCommandLine,
  type Parsed,
  parseInfoFlag,
  UsageError,
  toComplaint,
  hideEnvironment,
  note,
  print,
} from "./terminal/index.ts";
import { readVersion } from "./version.ts";

/** Loaded when they are wanted: `junctor serve --stdio` starts in half the time without the client, and is started often. */
export const commands: { readonly [name: string]: () => Promise<Command> } = {
  serve: async () => (await import("./serve/serve.ts")).serve,
  attach: async () => (await import("./running/attach.ts")).attach,
  daemon: async () => (await import("./running/daemon.ts")).daemon,
  tools: async () => (await import("./call/tools.ts")).tools,
  call: async () => (await import("./call/call.ts")).call,
  cost: async () => (await import("./call/cost.ts")).cost,
  task: async () => (await import("./call/task.ts")).task,
  resources: async () => (await import("./call/resources.ts")).resources,
  prompts: async () => (await import("./call/prompts.ts")).prompts,
  skills: async () => (await import("./call/skills.ts")).skills,
  login: async () => (await import("./login/login.ts")).login,
  logout: async () => (await import("./login/logout.ts")).logout,
  logins: async () => (await import("./login/logins.ts")).logins,
  check: async () => (await import("./check/check.ts")).check,
  config: async () => (await import("./check/config.ts")).config,
  why: async () => (await import("./check/why.ts")).why,
  status: async () => (await import("./running/status.ts")).status,
  open: async () => (await import("./running/open.ts")).open,
  logs: async () => (await import("./running/logs.ts")).logs,
  restart: async () => (await import("./running/restart.ts")).restart,
  reload: async () => (await import("./running/reload.ts")).reload,
  trust: async () => (await import("./check/trust.ts")).trust,
  audit: async () => (await import("./check/audit.ts")).audit,
  service: async () => (await import("./clients/service.ts")).service,
  install: async () => (await import("./clients/install.ts")).install,
  uninstall: async () => (await import("./clients/install.ts")).uninstall,
  clients: async () => (await import("./clients/clients.ts")).listClients,
  import: async () => (await import("./clients/import.ts")).importServers,
  add: async () => (await import("./clients/server-entries.ts")).add,
  remove: async () => (await import("./clients/server-entries.ts")).remove,
  enable: async () => (await import("./clients/server-entries.ts")).enable,
  disable: async () => (await import("./clients/server-entries.ts")).disable,
  stop: async () => (await import("./running/stop.ts")).stop,
  completion: async () => (await import("./clients/completion.ts")).completion,
};

/** The help of the whole program: every command once, those for every day first. */
export const groups: { readonly [title: string]: { readonly [names: string]: string } } = {
  "Every day": {
    serve: "serve all servers of a config at one URL, with a page",
    check: "start every server of a config; say what is wrong",
    "tools, call": "list the tools of a server or a config; call one",
    "status, open": "show how the servers that run are; open the page",
    "install, uninstall": "put Junctor into Claude, Cursor and other clients",
  },
  "Your config": {
    "add, remove": "add a server by its command or URL; take one out",
    "enable, disable": "switch a server on or off, and keep its entry",
    "import, clients": "copy the servers of a client; list all clients",
    config: "show a config as understood; its schema for editors",
    "trust, why": "approve what servers offer; say who may use a tool",
  },
  "One server": {
    "resources, prompts": "list the resources or prompts, and read one",
    skills: "list the skills, and read one",
    "task, cost": "return to a long call; what tools cost a model",
    "login, logout, logins": "sign in to servers that want OAuth",
  },
  "What runs": {
    "logs, restart": "read the log; start one server again",
    "reload, stop": "take an edited config; end the daemon",
    "attach, daemon": "one process of each server for all clients",
    service: "start the daemon when you log in",
    "audit, completion": "check an audit file; complete words in your shell",
  },
};

/** What people write for a command that is called otherwise here. */
const guesses: { readonly [command: string]: string } = {
  serve: "start run up gateway proxy server host listen dev launch",
  open: "ui dashboard page admin web gui browser browse view console",
  tools: "list ls show get inspect inspector",
  status: "ps info health top servers state running",
  check: "test validate verify doctor lint diagnose ping",
  call: "exec execute invoke use try",
  logs: "tail journal",
  install: "init setup configure config onboard",
  add: "new create register connect",
  remove: "rm delete del unregister",
  login: "auth signin sign-in authenticate authorize",
  logout: "signout sign-out",
  restart: "reboot",
  reload: "refresh",
  stop: "kill quit down shutdown exit end",
};

/** Commands for our own processes; the help does not name them. */
const innerCommands: typeof commands = {
  "serve-worker": async () => (await import("./serve/serve-worker.ts")).serveWorker,
  "renew-login": async () => (await import("./login/renew-login.ts")).renewLogin,
};

async function main(args: readonly string[]): Promise<number> {
  const [word = "help", ...rest] = args;
  if (word === "complete") return (await import("./clients/complete.ts")).complete(rest, commands);
  const info = parseInfoFlag(args);
  if (info === "version" || word === "version") return say(`${readVersion()}\n`);
  if (info === "help") return say((await describeOperand(word, rest)) ?? (await describeFirst(args)));
  if (word === "help") return say(await describeTopic(rest[0]));
  if (word.startsWith("-")) throw new UsageError(misplacedFlag(word, rest));
  const command = await loadCommand(word);
  const seen = hideEnvironment();
  if (seen !== undefined && word === "serve")
    await note(`junctor: warning: servers can read the variables of this process: ${seen}\n`);
  return command.run(parseCommandLine(rest, command));
}

async function loadCommand(word: string): Promise<Command> {
  const all = { ...commands, ...innerCommands };
  const load = Object.hasOwn(all, word) ? all[word] : undefined;
  if (load === undefined) throw new UsageError(unknownCommand(word));
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
  return describeProgram(groups);
}

function unknownCommand(word: string): string {
  const guessed = Object.keys(guesses).find((name) => guesses[name]?.split(" ").includes(word.toLowerCase()));
  const meant = guessed ?? nearest(word, [...Object.keys(commands), "help"]);
  const hint = meant === undefined ? "junctor help lists them" : `did you mean junctor ${meant}?`;
  return `there is no command ${JSON.stringify(word)}; ${hint}`;
}

/** For a command line that begins with a flag. */
function misplacedFlag(word: string, rest: readonly string[]): string {
  const flags = Object.keys(commonFlags).map((flag) => `--${flag}`);
  const meant = nearest(word.replace(/=.*$/s, ""), flags);
  if (meant !== undefined) return `unknown flag ${word}; did you mean ${meant}?`;
  const command = rest.find((other) => Object.hasOwn(commands, other)) ?? "COMMAND";
  return `the command comes before its flags: junctor ${command} ${word}; junctor help lists the commands`;
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
