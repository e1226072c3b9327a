import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** An entry of `mcpServers`. */
export type ServerEntry =
  | {
      readonly command: string;
      readonly args: readonly string[];
      readonly env?: { readonly [name: string]: string };
    }
  | { readonly url: string };

const path = (file: string): string => fileURLToPath(new URL(`../../../${file}`, import.meta.url));

/** A server from npm, as people run it. */
export function npmServer(
  name: "everything" | "filesystem" | "memory",
  args: readonly string[] = [],
  env: { readonly [name: string]: string } = {},
): ServerEntry {
  const file = path(`node_modules/@modelcontextprotocol/server-${name}/dist/index.js`);
  return { command: process.execPath, args: [file, ...args], env };
}

/** A child that remembers; see its fixture. */
export function statefulServer(
  args: readonly string[] = [],
  env: { readonly [name: string]: string } = {},
): ServerEntry {
  return { command: process.execPath, args: [path("test/fixtures/gateway-stateful.mjs"), ...args], env };
}

/** A child that misbehaves as its arguments say; see its fixture. */
export function childServer(...args: readonly string[]): ServerEntry {
  return { command: process.execPath, args: [path("test/fixtures/children/server.mjs"), ...args] };
}

/** A command that ends before it says anything. */
export const deadServer: ServerEntry = { command: process.execPath, args: ["-e", "process.exit(3)"] };

/** What an official HTTP server in a process of its own told. */
interface Told {
  readonly port?: number;
  readonly key?: string;
  readonly state?: "running" | "aborted";
  readonly subscribed?: string;
  readonly unsubscribed?: string;
  readonly headers?: { readonly [name: string]: string | undefined };
}

/** An official SDK's server over HTTP, in a process of its own. */
export interface SdkServer extends AsyncDisposable {
  readonly entry: ServerEntry;
  readonly child: ChildProcess;
  readonly port: number;
  /** Everything it told, in order. */
  readonly told: readonly Told[];
  /** What became of a waiting call last. */
  stateOf(key: string): string | undefined;
  /** Offers one more tool. */
  grow(name: string): void;
  /** Changes the note. */
  touch(): void;
}

/** Starts the official SDK's server of a generation. */
export async function startSdkServer(generation: "v1" | "v2", port = 0): Promise<SdkServer> {
  const child = fork(path(`test/fixtures/gateway-sdk-${generation}-http.mjs`), [String(port)]);
  const told: Told[] = [];
  child.on("message", (message: Told) => told.push(message));
  await once(child, "message");
  const { port: bound = 0 } = told[0] ?? {};
  return {
    entry: { url: `http://127.0.0.1:${bound}/mcp` },
    port: bound,
    child,
    told,
    stateOf: (key) => told.findLast((message) => message.key === key)?.state,
    grow: (name) => void child.send({ grow: name }),
    touch: () => void child.send({ touch: true }),
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
}
