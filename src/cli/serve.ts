import type { Server } from "../mcp/server.ts";
import { createServer } from "../server/server.ts";
import { serveStdio } from "../transports/stdio.ts";
import { listenTcp } from "../transports/tcp.ts";
import { type Command, parsePort } from "./command.ts";
import { createDemoRegistry } from "./demo.ts";
import { untilSignal } from "./until-signal.ts";
import { UsageError } from "./usage-error.ts";
import { readVersion } from "./version.ts";

/** `junctor serve` */
export const serve: Command = {
  name: "serve",
  summary: "Serve the built-in demo tools: echo, add, countdown, greet.",
  flags: {
    stdio: { help: "on standard input and output, for a client that starts us" },
    tcp: {
      value: "PORT",
      help: "on a TCP port, one JSON message a line (default 7780; 0 picks a free port)",
    },
    host: { value: "HOST", help: "the address to listen on (default 127.0.0.1)" },
  },
  run: async (parsed) => {
    const [stray] = parsed.operands;
    if (stray !== undefined) throw new UsageError(`serve takes no operand, but got ${JSON.stringify(stray)}`);
    if (parsed.has("stdio") && parsed.valueOf("tcp") !== undefined)
      throw new UsageError("choose --stdio or --tcp, not both");
    const server = createServer(createDemoRegistry(), {
      name: "junctor-demo",
      title: "Junctor demo",
      version: readVersion(),
    });
    if (parsed.has("stdio")) return serveOnStdio(server);
    return serveOnTcp(server, parsePort("tcp", parsed.valueOf("tcp") ?? "7780"), parsed.valueOf("host"));
  },
};

async function serveOnStdio(server: Server): Promise<number> {
  const stopping = new AbortController();
  void untilSignal().then(() => stopping.abort());
  await serveStdio(server, { signal: stopping.signal });
  return 0;
}

async function serveOnTcp(server: Server, port: number, host: string | undefined): Promise<number> {
  await using listener = await listenTcp(server, { port, ...(host === undefined ? {} : { host }) });
  const call =
    '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":3}}}';
  const hello =
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"me","version":"1"}}}';
  process.stdout.write(
    [
      `Junctor serves echo, add, countdown and greet on ${listener.host}:${listener.port}, one JSON message a line.`,
      "Try it from another terminal:",
      "",
      `  printf '%s\\n' '${hello}' '${call}' | nc -N ${listener.host} ${listener.port}`,
      "",
      "Ctrl-C stops it.",
      "",
    ].join("\n"),
  );
  await untilSignal();
  return 0;
}
