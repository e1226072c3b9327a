import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { fixture } from "../../bridge/support/upstream.ts";
import { bin } from "../../support/junctor-bin.ts";
import { type Program, startProgram, until } from "./program.ts";

/** One `junctor serve` of several. It comes back at the same port. */
export interface Replica extends AsyncDisposable {
  readonly port: number;
  readonly trunkPort: number;
  readonly pid: number;
  readonly isRunning: boolean;
  /** Everything its processes wrote, of all its runs. */
  output(): string;
  /** Starts it, and resolves when it is ready. */
  start(): Promise<void>;
  /** Ends it, and resolves when it is gone. */
  end(signal?: NodeJS.Signals): Promise<void>;
  /** Sends a signal and waits for nothing. */
  signal(signal: NodeJS.Signals): void;
  /** Breaks every connection that it has with another replica. */
  cutTrunk(): void;
}

export interface ReplicaOptions {
  readonly name: string;
  readonly port: number;
  readonly trunkPort: number;
  /** The trunk ports of all replicas. */
  readonly trunkPorts: readonly number[];
  readonly folder: string;
  readonly config: string;
  readonly env: { readonly [name: string]: string };
  /** More arguments of `serve`. */
  readonly args: readonly string[];
}

export function createReplica(options: ReplicaOptions): Replica {
  const { name, port, trunkPort, trunkPorts, folder, config } = options;
  const own = join(folder, name);
  mkdirSync(own, { recursive: true });
  const env = {
    ...process.env,
    XDG_CACHE_HOME: join(own, "cache"),
    XDG_STATE_HOME: join(own, "state"),
    JUNCTOR_TRUNK: `127.0.0.1:${trunkPort}`,
    NODE_OPTIONS: `--import=${pathToFileURL(fixture("cut-trunk.mjs")).href}`,
    TEST_TRUNK_PORTS: trunkPorts.join(" "),
    ...options.env,
  };
  const args = [bin, "serve", "--config", config, "--port", String(port), "--log-level", "warn"];
  let program: Program | undefined;
  let earlier = "";
  const isReady = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  return {
    port,
    trunkPort,
    get pid() {
      return program?.child.pid ?? 0;
    },
    get isRunning() {
      return program !== undefined && !program.hasEnded();
    },
    output: () => earlier + (program?.output() ?? ""),
    start: async () => {
      earlier += program?.output() ?? "";
      program = startProgram(process.execPath, [...args, ...options.args], env);
      await until(`${name} is ready`, isReady, program);
    },
    end: async (signal) => program?.end(signal),
    signal: (signal) => void program?.child.kill(signal),
    cutTrunk: () => void program?.child.kill("SIGUSR2"),
    [Symbol.asyncDispose]: async () => program?.end(),
  };
}
