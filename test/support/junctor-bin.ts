import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** The command as it is installed. */
export const bin: string = fileURLToPath(new URL("../../packages/junctor/dist/cli/main.js", import.meta.url));

/** A server whose tools are about its own process. */
export const oddServer: readonly string[] = [
  process.execPath,
  fileURLToPath(new URL("../fixtures/odd-server.mjs", import.meta.url)),
];

/** The demo tools on standard streams. */
export const demoServer: readonly string[] = [process.execPath, bin, "serve", "--stdio"];

/** How a run of a program ended. */
export interface Run {
  readonly code: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly stdin?: string;
  readonly env?: { readonly [name: string]: string };
  readonly cwd?: string;
  /** The user it runs as; only root may choose. */
  readonly uid?: number | undefined;
  /** Called with everything written so far, to either stream, and with the process. */
  readonly onOutput?: (output: string, child: ChildProcess) => void;
}

/** Runs `junctor` and collects what it writes. */
export function junctor(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  return run(process.execPath, [bin, ...args], options);
}

/**
 * Runs `junctor` on a pseudo-terminal of the given width, with its standard output and error mixed, as a person would see
 * them. `onOutput` may type.
 */
export function junctorOnTerminal(
  args: readonly string[],
  { columns = 100, ...options }: RunOptions & { readonly columns?: number } = {},
): Promise<Run> {
  const command = [process.execPath, bin, ...args]
    .map((word) => `'${word.replaceAll("'", `'\\''`)}'`)
    .join(" ");
  return run("script", ["-qec", `stty cols ${columns} -echo; ${command}`, "/dev/null"], options);
}

function run(program: string, args: readonly string[], options: RunOptions): Promise<Run> {
  const { cwd, uid } = options;
  const env = { ...process.env, ...options.env };
  const child = spawn(program, [...args], { cwd, env, ...(uid === undefined ? {} : { uid, gid: uid }) });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    stdout += chunk;
    options.onOutput?.(stdout + stderr, child);
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk;
    options.onOutput?.(stdout + stderr, child);
  });
  child.stdin.on("error", () => {}); // It may end without reading.
  if (options.onOutput === undefined || options.stdin !== undefined) child.stdin.end(options.stdin ?? "");
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      child.stdin.destroy();
      resolve({ code: code ?? signal, stdout, stderr });
    });
  });
}
