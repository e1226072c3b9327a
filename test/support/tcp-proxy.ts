import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Stands between a client and a server, counts what passes, and cuts connections like a bad network. */
export class TcpProxy implements AsyncDisposable {
  connects = 0;
  /** Whether connections are accepted and dropped at once. */
  isDropping = false;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(port: number) {
    this.#server = createServer((client) => {
      this.connects++;
      if (this.isDropping) return void client.resetAndDestroy();
      const upstream = connect(port, "127.0.0.1");
      for (const socket of [client, upstream]) {
        this.#sockets.add(socket);
        socket.on("error", () => {}); // Cut on purpose.
        socket.on("close", () => this.#sockets.delete(socket));
      }
      client.pipe(upstream).pipe(client);
      client.on("close", () => upstream.destroy());
      upstream.on("close", () => client.destroy());
    });
  }

  static async to(port: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(port);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  get open(): number {
    return this.#sockets.size;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
