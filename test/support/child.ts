import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type FrameReader, isAnswer, readFrames, toLine } from "./raw-wire.ts";
import type { Frame } from "./wire-schema.ts";

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A server in a process of its own, on its standard streams. Disposing it kills what is left of it. */
export interface Child extends FrameReader, AsyncDisposable {
  readonly process: ChildProcessWithoutNullStreams;
  readonly exited: Promise<Exit>;
  /** Everything it wrote to its standard error stream so far. */
  stderr(): string;
  send(message: string | object): void;
  request(request: Frame & { readonly id: string | number }): Promise<Frame>;
}

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Runs the built command line, or a fixture, with Node. */
export function spawnNode(...args: readonly string[]): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [...args], { cwd: root, env: { ...process.env, NO_COLOR: "1" } });
}

/** Starts a server that talks on its standard streams. */
export function spawnServer(...args: readonly string[]): Child {
  const child = spawnNode(...args);
  const exited = untilClosed(child);
  const reader = readFrames(child.stdout);
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  // A server that is gone is what some tests are about.
  child.stdin.on("error", () => {});
  const send = (message: string | object): void => void child.stdin.write(toLine(message));
  return {
    ...reader,
    process: child,
    exited,
    stderr: () => stderr,
    send,
    request: (request) => {
      send({ jsonrpc: "2.0", ...request });
      const gone = exited.then(({ code }) => {
        throw new Error(`The server ended with code ${code} instead of answering. ${stderr}`);
      });
      return Promise.race([reader.take((frame) => isAnswer(frame, request.id)), gone]);
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

/** Runs a command to its end. */
export async function runNode(
  ...args: readonly string[]
): Promise<Exit & { readonly stdout: string; readonly stderr: string }> {
  const child = spawnNode(...args);
  child.stdin.end();
  const [stdout, stderr, exit] = await Promise.all([
    readAll(child.stdout),
    readAll(child.stderr),
    untilClosed(child),
  ]);
  return { ...exit, stdout, stderr };
}

async function untilClosed(child: ChildProcessWithoutNullStreams): Promise<Exit> {
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  return { code, signal };
}

async function readAll(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
