import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fixture } from "../../bridge/support/upstream.ts";

/** The fixture `compatibility-server.mjs` in a config: what it is told to do, and what happened to its calls. */
export interface ToldServer extends Disposable {
  readonly entry: object;
  /** Starts it over HTTP, and resolves with its entry in a config. */
  startHttp(): Promise<object>;
  tell(deed: "go" | "grow" | "touch", nonce: string): void;
  count(what: "run" | "cancelled", nonce: string): number;
}

export function createToldServer(era: "legacy" | "modern"): ToldServer {
  const folder = mkdtempSync(join(tmpdir(), "junctor-told-"));
  const log = join(folder, "log");
  mkdirSync(folder, { recursive: true });
  writeFileSync(log, "");
  const script = fixture("compatibility-server.mjs");
  const args = ["--serves", era, "--folder", folder];
  let child: ChildProcess | undefined;
  return {
    entry: { command: process.execPath, args: [script, ...args] },
    startHttp: async () => {
      child = fork(script, [...args, "--http"], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
      const [port] = (await once(child, "message")) as [number];
      return { type: "http", url: `http://127.0.0.1:${port}/mcp` };
    },
    tell: (deed, nonce) => writeFileSync(join(folder, `${deed}.${nonce}`), ""),
    count: (what, nonce) =>
      readFileSync(log, "utf8")
        .split("\n")
        .filter((line) => line === `${what} ${nonce}`).length,
    [Symbol.dispose]: () => {
      child?.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A server that remembers: its tool `count` says how often its process was called. */
export const statefulServer: object = {
  command: process.execPath,
  args: [fixture("gateway-stateful.mjs")],
};
