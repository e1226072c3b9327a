import { createSeal, type Seal } from "../mcp/seal.ts";
import type { Server } from "../mcp/server.ts";
import { createServer } from "../server/server.ts";
import { listenHttp } from "../transports/http/node.ts";
import { serveStdio } from "../transports/stdio.ts";
import { listenTcp } from "../transports/tcp.ts";
import { type Command, type Parsed, parsePort } from "./command.ts";
import { createDemoRegistry } from "./demo.ts";
import { describeHttp, describeTcp } from "./greeting.ts";
import { PortError } from "./port-error.ts";
import { untilSignal } from "./until-signal.ts";
import { UsageError } from "./usage-error.ts";
import { readVersion } from "./version.ts";

/** `junctor serve` */
export const serve: Command = {
  name: "serve",
  summary: "Serve the built-in demo tools: echo, add, countdown, greet.",
  flags: {
    host: { value: "HOST", help: "the address to listen on (default 127.0.0.1)" },
    port: { value: "PORT", help: "the HTTP port (default 7780; 0 picks a free one)" },
    stdio: { help: "on standard input and output instead, for a client that starts us" },
    tcp: { value: "PORT", help: "on a TCP port instead, one JSON message a line" },
  },
  run: async (parsed) => {
    assertSensible(parsed);
    const seal = createSecretSeal();
    const info = { name: "junctor-demo", title: "Junctor demo", version: readVersion() };
    const server = createServer(createDemoRegistry(), info, { seal });
    const host = parsed.valueOf("host") ?? "127.0.0.1";
    const tcp = parsed.valueOf("tcp");
    if (parsed.has("stdio")) return serveOnStdio(server);
    if (tcp !== undefined) return serveOnTcp(server, parsePort("tcp", tcp), host);
    return serveOnHttp(server, parsePort("port", parsed.valueOf("port") ?? "7780"), host, seal);
  },
};

function assertSensible(parsed: Parsed): void {
  const [stray] = parsed.operands;
  if (stray !== undefined) throw new UsageError(`serve takes no operand, but got ${JSON.stringify(stray)}`);
  const transports = [
    parsed.has("stdio") ? "--stdio" : undefined,
    parsed.valueOf("tcp") === undefined ? undefined : "--tcp",
    parsed.valueOf("port") === undefined ? undefined : "--port",
  ].filter((flag) => flag !== undefined);
  if (transports.length > 1) throw new UsageError(`choose one of ${transports.join(" and ")}`);
  if (parsed.has("stdio") && parsed.has("host"))
    throw new UsageError("--stdio listens on no address; leave out --host");
}

/** With `JUNCTOR_SECRET` set, sessions and states outlive this process. */
function createSecretSeal(): Seal {
  const secret = process.env["JUNCTOR_SECRET"];
  return createSeal(secret === undefined || secret === "" ? {} : { secret });
}

async function serveOnStdio(server: Server): Promise<number> {
  const stopping = new AbortController();
  void untilSignal().then(() => {
    server.drain();
    stopping.abort();
  });
  await serveStdio(server, { signal: stopping.signal });
  return 0;
}

async function serveOnTcp(server: Server, port: number, host: string): Promise<number> {
  await using listener = await withAdvice("tcp", listenTcp(server, { port, host }));
  process.stdout.write(describeTcp(listener.host, listener.port));
  await untilSignal();
  server.drain();
  return 0;
}

async function serveOnHttp(server: Server, port: number, host: string, seal: Seal): Promise<number> {
  await using listener = await withAdvice("port", listenHttp(server, { port, host, seal }));
  process.stdout.write(describeHttp(listener.url));
  await untilSignal();
  return 0;
}

/** Only here is it known which flag the port came from. */
async function withAdvice<T>(flag: "tcp" | "port", listening: Promise<T>): Promise<T> {
  try {
    return await listening;
  } catch (error) {
    if (isPortTrouble(error)) throw new PortError(flag, error);
    throw error;
  }
}

function isPortTrouble(error: unknown): error is Error {
  return (
    error instanceof Error && "code" in error && (error.code === "EADDRINUSE" || error.code === "EACCES")
  );
}
