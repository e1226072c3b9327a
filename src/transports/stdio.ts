import { Writable } from "node:stream";
import type { Server } from "../mcp/server.ts";
import { assertKnownKeys, type KeysOf } from "../options/known-keys.ts";
import { serveOptionKeys } from "./serve-channel.ts";
import { serveStream, type ServeStreamOptions } from "./stream.ts";

const optionKeys: KeysOf<ServeStreamOptions> = {
  ...serveOptionKeys,
  maxLineBytes: true,
  maxDepth: true,
  closeMs: true,
  onStray: true,
};

/**
 * Serves MCP on this process's standard input and output. From then on everything else that is written to the standard
 * output, `console.log` included, goes to standard error, because a stray line there would break the protocol; also
 * after it resolved, because a handler may still run. Resolves when the client has closed our input and every request
 * that was read is answered (see {@link serveStream}), or when the client reads no more; the caller then exits.
 *
 * @example
 * await serveStdio(createServer(registry, { name: "weather", version: "1.0.0" }));
 */
export function serveStdio(server: Server, options: ServeStreamOptions = {}): Promise<void> {
  assertKnownKeys("serveStdio", options, optionKeys);
  return serveStream(server, process.stdin, takeStdout(), options);
}

/** Takes the standard output for messages alone. */
function takeStdout(): Writable {
  const { stdout, stderr } = process;
  const write = stdout.write.bind(stdout);
  const messages = new Writable({
    decodeStrings: false,
    // The callback comes when the pipe took the chunk, so a slow reader holds up the writer and nobody else.
    write: (chunk: string | Uint8Array, _encoding, done) => void write(chunk, done),
  });
  stdout.on("error", (error: Error) => void messages.destroy(error));
  stdout.write = stderr.write.bind(stderr);
  return messages;
}
