import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy that cuts connections in the middle of what the server says. */
export interface CuttingProxy extends AsyncDisposable {
  readonly port: number;
  /** How often it cut. */
  readonly cuts: number;
  /** Where to connect to; set once the server is up. */
  target: number;
  /** Cuts the connection, with a reset on both sides, right after the server has said this; once. */
  cutAfter(text: string): void;
}

export async function startCuttingProxy(): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  const patterns: string[] = [];
  let cuts = 0;
  let target = 0;

  const server = createServer((downstream) => {
    const upstream = connect(target, "127.0.0.1");
    const cut = (): void => {
      downstream.resetAndDestroy();
      upstream.resetAndDestroy();
    };
    for (const socket of [downstream, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        downstream.destroy();
        upstream.destroy();
      });
    }
    downstream.on("data", (bytes: Buffer) => upstream.write(bytes));
    upstream.on("data", (bytes: Buffer) => {
      const found = patterns.findIndex((pattern) => bytes.includes(pattern));
      if (found === -1) return void downstream.write(bytes);
      patterns.splice(found, 1);
      cuts++;
      // What came so far arrives, and then nothing: a reset would throw away what is still on its way.
      downstream.write(bytes, () => setImmediate(cut));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    get cuts() {
      return cuts;
    },
    get target() {
      return target;
    },
    set target(port) {
      target = port;
    },
    cutAfter: (text: string) => void patterns.push(text),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
