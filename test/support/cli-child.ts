import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** `junctor serve` in a process of its own, on a free port. */
export interface CliChild extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly port: number;
  /** What it wrote to its standard output so far. */
  readonly output: () => string;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: string | null }>;
}

/** Starts it, and resolves when it listens. Disposing kills it. */
export async function startCli(env: { readonly [name: string]: string } = {}): Promise<CliChild> {
  const main = fileURLToPath(new URL("../../packages/junctor/dist/cli/main.js", import.meta.url));
  const child = spawn(process.execPath, [main, "serve", "--port", "0"], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit").then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as string | null,
  }));
  let output = "";
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      const found = /http:\/\/127\.0\.0\.1:([0-9]+)\/mcp/.exec(output);
      if (found !== null) resolve(Number(found[1]));
    });
    void exited.then(() => reject(new Error(`It ended before it listened: ${output}`)));
  });
  return {
    child,
    port,
    output: () => output,
    exited,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await exited;
    },
  };
}
