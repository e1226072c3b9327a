import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { fixture, startGateway, until } from "../lib/gateway.ts";
import { attempt, type Line, type Row, type Scale, toText } from "../lib/row.ts";

const connections = 300;

/** What a client sends before it falls silent. */
const beginnings = [
  ["half of the headers", "GET /health HTTP/1.1\r\nHost: 127.0.0.1"],
  ["nothing", ""],
] as const;

interface Attack extends Disposable {
  /** Connections that were opened so far. */
  opened(): number;
}

/** Holds connections that never finish a request, and opens each again as soon as it is closed. Resolves when each was connected or refused. */
async function attack(port: number, beginning: string): Promise<Attack> {
  const sockets = new Set<Socket>();
  let opened = 0;
  let isOver = false;
  const open = (): Promise<unknown> => {
    opened++;
    const socket = connect(port, "127.0.0.1");
    sockets.add(socket);
    socket.on("error", () => {}); // The gateway may close it.
    socket.once("close", () => {
      sockets.delete(socket);
      if (!isOver) void open();
    });
    socket.resume().write(beginning);
    return once(socket, "connect").catch(() => {});
  };
  await Promise.all(Array.from({ length: connections }, open));
  return {
    opened: () => opened,
    [Symbol.dispose]: () => {
      isOver = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** The status of a request on a connection of its own, or why there is none. */
async function check(port: number): Promise<number | string> {
  try {
    const sent = get({ host: "127.0.0.1", port, path: "/health", agent: false });
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.resume();
    return response.statusCode ?? 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

async function run(scale: Scale): Promise<readonly Line[]> {
  const [checks, kinds] = scale === "full" ? [400, 2] : [40, 1];
  await using gateway = await startGateway({
    mcpServers: { echo: { command: process.execPath, args: [fixture("gateway-echo.mjs")] } },
    junctor: { admin: { port: 0 } },
  });
  const page = (): string | undefined => /http:\/\/127\.0\.0\.1:([0-9]+)\/#key=/.exec(gateway.output())?.[1];
  await until(() => page() !== undefined, 30_000);
  const port = Number(page());
  const lines: Line[] = [];
  for (const [sent, beginning] of beginnings.slice(0, kinds))
    lines.push(
      await attempt(
        {
          what: `connections to the admin port that send ${sent}, opened again as soon as they are closed`,
          count: `${connections} connections, ${checks} health checks`,
          bound: `${checks} of ${checks} health checks answered`,
        },
        async () => {
          using halves = await attack(port, beginning);
          const statuses: (number | string)[] = [];
          for (let number = 0; number < checks; number++) statuses.push(await check(port));
          const others = statuses.filter((status) => status !== 200);
          const first = others.length === 0 ? "" : `, the first of the others got ${others[0]}`;
          return {
            figure: `${checks - others.length} of ${checks} answered${first}; ${toText(halves.opened())} connections in all`,
            isMet: others.length === 0,
          };
        },
      ),
    );
  return lines;
}

export const row: Row = {
  title: "Half requests",
  how: `\`junctor serve\`, whose admin port has 256 places for connections. ${connections} connections at a time send the beginning of a request and no more; health checks come from the same address, each on a connection of its own.`,
  limitMinutes: 5,
  isInShort: true,
  run,
};
