import { spawnSync } from "node:child_process";

/** A secret of the user's keychain, or why it cannot be had. */
export type KeychainSecret = { readonly text: string } | { readonly problem: string };

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

/** A keychain that asks the person to unlock it has so long. */
const patienceMs = 10_000;
/** A config is read several times while a client is taken in; each secret is asked for once. */
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

/** Keeps a secret; undefined, or why that failed. */
export function writeKeychain(name: string, text: string): string | undefined {
  const program = programs[process.platform];
  if (program === undefined) return noKeychain;
  if (/[\0\n\r]/.test(text)) return "a secret of several lines cannot be kept in the keychain";
  known.delete(name);
  const input = program.input(name, text);
  return run(program, program.write(name), input).problem ?? verify(name, text);
}

const noKeychain = "Junctor knows no keychain on this system";

/** What was written can be read. */
function verify(name: string, text: string): string | undefined {
  const secret = ask(name);
  if ("problem" in secret) return secret.problem;
  return secret.text === text ? undefined : "the keychain gives back another value";
}

function ask(name: string): KeychainSecret {
  const program = programs[process.platform];
  if (program === undefined) return { problem: noKeychain };
  const { problem, said, isEmpty } = run(program, program.read(name), "");
  if (isEmpty) return { problem: "the keychain has no such secret" };
  return problem === undefined ? { text: said.replace(/\n$/, "") } : { problem };
}

interface Ran {
  readonly said: string;
  readonly problem: string | undefined;
  /** Whether the keychain was asked, and has nothing of that name. */
  readonly isEmpty: boolean;
}

function run({ command, missing }: KeychainProgram, args: readonly string[], input: string): Ran {
  const options = { input, encoding: "utf8", timeout: patienceMs, maxBuffer: maxBytes } as const;
  const { status, stdout, stderr, error } = spawnSync(command, args, options);
  const code: unknown = error !== undefined && "code" in error ? error.code : undefined;
  const failed = (problem: string): Ran => ({ said: "", problem, isEmpty: false });
  if (code === "ENOENT") return failed(missing);
  if (code === "ETIMEDOUT") return failed(`${command} did not answer within ${patienceMs / 1000} s`);
  if (error !== undefined) return failed(`${command} failed: ${error.message}`);
  if (status === 0) return { said: stdout, problem: undefined, isEmpty: false };
  const [line = ""] = stderr.trim().split("\n");
  // Each says by its exit code that there is no such item: security with 44, secret-tool with 1 and no word.
  const isEmpty = status === 44 || (status === 1 && line === "" && stdout === "");
  return { said: "", problem: `${command} failed: ${line.slice(0, 200) || `code ${status}`}`, isEmpty };
}

/** A word for the command line that `security -i` reads. */
function quote(text: string): string {
  return `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
}
