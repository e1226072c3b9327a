import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export type Way = "http" | "stdio";
export type EraName = "legacy" | "modern";

/** The path of a fixture. */
export const fixture = (file: string): string =>
  fileURLToPath(new URL(`../../fixtures/${file}`, import.meta.url));

/** A server that asks, as it stands in a config, and what happened to it so far. */
export interface AskingUpstream extends AsyncDisposable {
  readonly entry: object;
  /** What happened: each line is a word and what it is about. */
  events(): readonly string[];
  /** How many lines begin with these words. */
  count(...words: readonly string[]): number;
  /** Ends the process of one over HTTP. */
  kill(): Promise<void>;
  /** Where the file `log` is. */
  readonly folder: string;
}

/** A folder of a test's own, gone when it is disposed. */
export function createFolder(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "junctor-bridge-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** Makes ready a server that asks. One on standard streams is started by whoever uses its entry, as often as it likes. */
export async function startUpstream(serves: EraName, way: Way): Promise<AskingUpstream> {
  const folder = createFolder();
  const log = join(folder.path, "log");
  writeFileSync(log, "");
  const script = fixture("bridge-upstream.mjs");
  const args = ["--serves", serves, "--log", log];
  let child: ChildProcess | undefined;
  let entry: object = { command: process.execPath, args: [script, ...args] };
  if (way === "http") {
    child = fork(script, [...args, "--http"], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    const [port] = (await once(child, "message")) as [number];
    entry = { type: "http", url: `http://127.0.0.1:${port}/mcp` };
  }
  const events = (): readonly string[] => readFileSync(log, "utf8").split("\n").filter(Boolean);
  const kill = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  };
  return {
    entry,
    folder: folder.path,
    events,
    count: (...words) => events().filter((line) => `${line} `.startsWith(`${words.join(" ")} `)).length,
    kill,
    [Symbol.asyncDispose]: async () => {
      await kill();
      folder[Symbol.dispose]();
    },
  };
}
