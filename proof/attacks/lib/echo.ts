import { spawn } from "node:child_process";
import { once } from "node:events";
import { fixture } from "./gateway.ts";

/** The echo server of the tests over HTTP, in a process of its own. */
export interface EchoServer {
  /** `http://127.0.0.1:PORT` */
  readonly origin: string;
  end(): void;
}

/** Starts it and resolves when it listens. */
export async function startEcho(...args: readonly string[]): Promise<EchoServer> {
  const child = spawn(process.execPath, [fixture("gateway-echo.mjs"), "--http", ...args], {
    stdio: ["pipe", "pipe", "ignore"],
  });
  const [port] = (await once(child.stdout, "data")) as [Buffer];
  return { origin: `http://127.0.0.1:${Number(port.toString())}`, end: () => child.kill("SIGKILL") };
}
