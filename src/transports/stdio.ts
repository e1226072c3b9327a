import { Writable } from "node:stream";
import type { Server } from "../mcp/server.ts";
import { serveStream, type ServeStreamOptions } from "./stream.ts";

/**
 * Serves MCP on this process's standard input and output. While it runs, everything else that is written to the
 * standard output, `console.log` included, goes to standard error: a stray line there would break the protocol.
 * Resolves when the client has closed our input; the caller then exits.
 *
 * @example
 * await serveStdio(createServer(registry, { name: "weather", version: "1.0.0" }));
 */
export async function serveStdio(server: Server, options: ServeStreamOptions = {}): Promise<void> {
  const guard = guardStdout();
  try {
    await serveStream(server, process.stdin, guard.messages, options);
  } finally {
    guard.release();
  }
}

/** Takes the standard output for messages alone; what others write there goes to standard error until released. */
function guardStdout(): { readonly messages: Writable; release(): void } {
  const { stdout, stderr } = process;
  const original = stdout.write;
  const write = original.bind(stdout);
  const messages = new Writable({
    decodeStrings: false,
    // The callback comes when the pipe took the chunk, so a slow reader holds up the writer and nobody else.
    write: (chunk: string | Uint8Array, _encoding, done) => void write(chunk, done),
  });
  const onError = (error: Error): void => void messages.destroy(error);
  stdout.on("error", onError);
  stdout.write = stderr.write.bind(stderr);
  return {
    messages,
    release: () => {
      stdout.write = original;
      stdout.off("error", onError);
    },
  };
}
