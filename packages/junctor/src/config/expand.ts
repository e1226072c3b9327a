import { spawnSync } from "node:child_process";
import { basename, dirname, sep } from "node:path";

/** Where a config comes from, and what its variables and relative paths mean. */
export interface ConfigSource {
  /** For messages; `config` when it came from code. */
  readonly file: string;
  readonly env: { readonly [name: string]: string | undefined };
  /** What relative paths are resolved against, and `${workspaceFolder}` stands for. */
  readonly folder?: string;
  /** The folder of the project, where it is not that of the config; `false` when there is none. */
  readonly workspace?: string | false | undefined;
  /** Reads the text of an `envFile`. Without it, an `envFile` is an issue. */
  readonly readText?: (file: string) => string;
  /** The secret that `${keychain:NAME}` stands for. Without it, such a reference is an issue. */
  readonly readSecret?: (name: string) => KeychainSecret;
  /** Says why a sandbox cannot be made here; without it, that is found out when the server starts. */
  readonly findSandboxProblem?: (sandbox: {
    readonly memoryMb?: number;
    readonly processes?: number;
  }) => string | undefined;
}

/** What the variables of a config mean. */
type Meaning = Pick<ConfigSource, "env" | "folder" | "workspace" | "readSecret">;

/** A text with its variables filled in. */
interface Expansion {
  /** The text without its faulty variables. */
  readonly text: string;
  /** The values that came from the environment, by the names of their variables, and those of the keychain. */
  readonly values: readonly { readonly name: string; readonly value: string }[];
  readonly secrets: readonly string[];
  readonly faults: readonly Fault[];
}

/** A variable that could not be filled in. */
export type Fault =
  /** It has no value here. */
  | { readonly kind: "unset"; readonly name: string; readonly message: string }
  /** It is one that an editor fills in, and cannot be known here. */
  | { readonly kind: "unknown"; readonly name: string; readonly message: string }
  /** It is not a valid reference. */
  | { readonly kind: "malformed"; readonly message: string };

// An escape, a reference, or the beginning of one that has no end.
const reference = /\$\$\{|\$\{([^}]*)\}|\$\{/g;
const variable = /^(?:env:)?([A-Za-z_][A-Za-z0-9_()]*)(?::-(.*))?$/s;

/**
 * Fills in `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${keychain:NAME}` and what editors predefine; `$${` gives `${`. Goes over the text
 * once: variables inside the value of a variable are not filled in, or setting one variable could reveal all others.
 */
export function expand(text: string, source: Meaning): Expansion {
  const values: { readonly name: string; readonly value: string }[] = [];
  const secrets: string[] = [];
  const faults: Fault[] = [];
  const fail = (fault: Fault): string => {
    faults.push(fault);
    return "";
  };
  const malformed = (message: string): string => fail({ kind: "malformed", message });
  const valueOf = (name: string, fallback?: string): string => {
    const value = Object.hasOwn(source.env, name) ? source.env[name] : undefined;
    // As in a shell, `:-` stands in for an empty value too.
    if (fallback !== undefined && (value === undefined || value === "")) return fallback;
    if (value === undefined) {
      const message = `${name} is not set: set it, or write \${${name}:-default}`;
      return fail({ kind: "unset", name, message });
    }
    values.push({ name, value });
    return value;
  };
  const secretOf = (name: string): string => {
    const secret = source.readSecret?.(name) ?? { problem: "it is read from files of this machine only" };
    if ("problem" in secret) {
      const message = `\${keychain:${name}} has no value: ${secret.problem}`;
      return fail({ kind: "unknown", name: `keychain:${name}`, message });
    }
    secrets.push(secret.text);
    return secret.text;
  };
  const resolve = (whole: string, inside: string | undefined): string => {
    if (whole === "$${") return "${";
    if (inside === undefined)
      return malformed("has a ${ without a }: write ${NAME}, or $${ for the characters ${");
    const [, secret] = /^keychain:(.+)$/s.exec(inside) ?? [];
    if (secret !== undefined) return secretOf(secret);
    const own = predefined(inside, source);
    if (own !== undefined) return own.text ?? fail({ kind: "unknown", name: inside, message: own.fault });
    const [, name, fallback] = variable.exec(inside) ?? [];
    if (name === undefined && inside.startsWith("input:"))
      return fail({ kind: "unknown", name: inside, message: explain(inside) });
    if (name === undefined) return malformed(explain(inside));
    if (fallback?.includes("${") === true)
      return malformed(
        `has a variable in the default of ${name}: write \${${name}:-default} with a plain text`,
      );
    return valueOf(name, fallback);
  };
  return { text: text.replaceAll(reference, resolve), values, secrets, faults };
}

type Predefined = { readonly text: string } | { readonly text: undefined; readonly fault: string };

/** What VS Code and Cursor know by a name of their own. */
function predefined(
  name: string,
  { env, folder, workspace = toWorkspace(folder) }: Meaning,
): Predefined | undefined {
  const known = (text: string | false | undefined, instead: string): Predefined =>
    text === undefined || text === false
      ? { text: undefined, fault: `\${${name}} is not known here: ${instead}` }
      : { text };
  const elsewhere = (what: string): string =>
    workspace === false
      ? "the client was not started in the folder of a project; write --workspace FOLDER after attach"
      : `write ${what} itself`;
  switch (name) {
    case "workspaceFolder":
      return known(workspace, elsewhere("the folder"));
    case "workspaceFolderBasename":
      return known(workspace && basename(workspace), elsewhere("the name"));
    case "userHome":
      return known(env["HOME"] ?? env["USERPROFILE"], "set HOME, or write the folder itself");
    case "pathSeparator":
    case "/":
      return { text: sep };
    default:
      return undefined;
  }
}

/** Repeats of a reference only what cannot be a secret: `${TOKEN-abc}` may hold one. */
function explain(inside: string): string {
  const [, kind, id = ""] = /^([a-z]+):(.*)$/is.exec(inside) ?? [];
  if (kind === "input") {
    const name = id.replaceAll(/[^A-Za-z0-9]+/g, "_").toUpperCase();
    return `\${input:…} is asked for by an editor only: set an environment variable and write \${${/^[A-Z]/.test(name) ? name : "NAME"}}`;
  }
  const shown = `\${${/^[A-Za-z0-9_]*:?/.exec(inside)?.[0] ?? ""}…}`;
  return `${shown} is not a variable: write \${NAME} or \${NAME:-default}, or $\${ for the characters \${`;
}

/** Editors keep their configs in a folder of the workspace. */
function toWorkspace(folder: string | undefined): string | undefined {
  if (folder === undefined) return undefined;
  return [".vscode", ".cursor"].includes(basename(folder)) ? dirname(folder) : folder;
}

/** A secret of the user's keychain, or why it cannot be read. */
type KeychainSecret = { readonly text: string } | { readonly problem: string };

/** A program that reads and writes the keychain of a system. */
interface KeychainProgram {
  readonly command: string;
  /** What to do when it is not there. */
  readonly missing: string;
  readonly read: (name: string) => readonly string[];
  readonly write: (name: string) => readonly string[];
  /** What it reads from its input, so that no other program sees the secret among the words of a command. */
  readonly input: (name: string, text: string) => string;
}

const programs: { readonly [platform: string]: KeychainProgram | undefined } = {
  linux: {
    command: "secret-tool",
    missing: "secret-tool is not installed (libsecret-tools on Debian)",
    read: (name) => ["lookup", "service", "junctor", "account", name],
    write: (name) => ["store", `--label=Junctor: ${name}`, "service", "junctor", "account", name],
    input: (_, text) => text,
  },
  darwin: {
    command: "security",
    missing: "the program security is not found",
    read: (name) => ["find-generic-password", "-s", "junctor", "-a", name, "-w"],
    write: () => ["-i"],
    input: (name, text) => `add-generic-password -U -s junctor -a ${quote(name)} -w ${quote(text)}\n`,
  },
};

/** How long the keychain may take: it may ask the person to unlock it. */
const patienceMs = 10_000;
/** A config is read several times while a client connects; each secret is asked for once. */
const rememberMs = 5000;
const maxBytes = 64 * 1024;
const known = new Map<string, { readonly secret: KeychainSecret; readonly until: number }>();

/** The secret that `${keychain:NAME}` stands for. */
export function readKeychain(name: string): KeychainSecret {
  const now = performance.now();
  const before = known.get(name);
  if (before !== undefined && before.until > now) return before.secret;
  const secret = ask(name);
  known.set(name, { secret, until: performance.now() + rememberMs });
  return secret;
}

/** Stores a secret. Returns undefined, or why that failed. */
export function writeKeychain(name: string, text: string): string | undefined {
  const program = programs[process.platform];
  if (program === undefined) return noKeychain;
  if (/[\0\n\r]/.test(text)) return "a secret of several lines cannot be kept in the keychain";
  known.delete(name);
  const input = program.input(name, text);
  return run(program, program.write(name), input).problem ?? verify(name, text);
}

const noKeychain = "Junctor knows no keychain on this system";

/** Checks that what was written can be read. Returns undefined, or what is wrong. */
function verify(name: string, text: string): string | undefined {
  const secret = ask(name);
  if ("problem" in secret) return secret.problem;
  return secret.text === text ? undefined : "the keychain gives back another value";
}

function ask(name: string): KeychainSecret {
  const program = programs[process.platform];
  if (program === undefined) return { problem: noKeychain };
  const { problem, output, isEmpty } = run(program, program.read(name), "");
  if (isEmpty) return { problem: "the keychain has no such secret" };
  return problem === undefined ? { text: output.replace(/\n$/, "") } : { problem };
}

interface RunResult {
  readonly output: string;
  readonly problem: string | undefined;
  /** Whether the keychain was asked, and has nothing of that name. */
  readonly isEmpty: boolean;
}

function run({ command, missing }: KeychainProgram, args: readonly string[], input: string): RunResult {
  const options = { input, encoding: "utf8", timeout: patienceMs, maxBuffer: maxBytes } as const;
  const { status, stdout, stderr, error } = spawnSync(command, args, options);
  const code: unknown = error !== undefined && "code" in error ? error.code : undefined;
  const failed = (problem: string): RunResult => ({ output: "", problem, isEmpty: false });
  if (code === "ENOENT") return failed(missing);
  if (code === "ETIMEDOUT") return failed(`${command} did not answer within ${patienceMs / 1000} s`);
  if (error !== undefined) return failed(`${command} failed: ${error.message}`);
  if (status === 0) return { output: stdout, problem: undefined, isEmpty: false };
  const [line = ""] = stderr.trim().split("\n");
  // The exit codes for a missing item: 44 of security, 1 of secret-tool, which prints nothing then.
  const isEmpty = status === 44 || (status === 1 && line === "" && stdout === "");
  return { output: "", problem: `${command} failed: ${line.slice(0, 200) || `code ${status}`}`, isEmpty };
}

/** A word for the command line that `security -i` reads. */
function quote(text: string): string {
  return `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
}
