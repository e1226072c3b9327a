import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createDeferred } from "@junctor/core/async";

/** Opens a page in the user's browser. No shell sees the address, which a server chose; only web pages are opened. */
export function openInBrowser(url: string): void {
  const { protocol, href } = new URL(url);
  if (protocol === "https:" || protocol === "http:") void openAddress(href); // The address is shown too.
}

/** A program that cannot open anything ends sooner than this. */
const openMs = 2000;

/** Has the system open an address that is ours, such as that of a file. Resolves with whether that seems to have worked. */
export function openAddress(href: string): Promise<boolean> {
  const [program = "", ...args] =
    process.platform === "darwin"
      ? ["open", href]
      : process.platform === "win32"
        ? ["rundll32", "url.dll,FileProtocolHandler", href]
        : ["xdg-open", href];
  const child = spawn(program, args, { stdio: "ignore", detached: true });
  child.unref();
  return new Promise<boolean>((resolve) => {
    // Some programs open the browser and run as long as it does.
    const timer = setTimeout(() => resolve(true), openMs);
    const settle = (isOpened: boolean): void => {
      clearTimeout(timer);
      resolve(isOpened);
    };
    child.once("error", () => settle(false));
    child.once("exit", (code) => settle(code === 0));
  });
}

/** Waits on this machine for the address that a sign-in ends with. */
interface CallbackListener extends AsyncDisposable {
  readonly redirectUrl: string;
  /** The first request that has this state. Requests without it, and those after it, are refused. */
  next(state: string, signal?: AbortSignal): Promise<string>;
}

/** Listens on the usual port, or on another when that is taken. */
export async function listenForCallback(usualPort: number): Promise<CallbackListener> {
  const waiting = new Map<string, (url: string) => void>();
  let host = "";
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", `http://${host}`);
    const state = url.searchParams.get("state") ?? "";
    const take = waiting.get(state);
    const isOurs = request.method === "GET" && url.pathname === "/callback" && request.headers.host === host;
    const isTaken = isOurs && take !== undefined;
    response.writeHead(isTaken ? 200 : 400, {
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      connection: "close",
    });
    response.end(isTaken ? "Done. You can close this page.\n" : "This is not the end of a sign-in here.\n");
    if (!isTaken) return;
    waiting.delete(state);
    take(url.href);
  });
  await listen(server, usualPort).catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EADDRINUSE" && code !== "EACCES") throw error;
    return listen(server, 0);
  });
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    redirectUrl: `http://${host}/callback`,
    next: (state, signal) => {
      const found = createDeferred<string>();
      waiting.set(state, found.resolve);
      const onAbort = (): void => found.reject(signal?.reason);
      if (signal?.aborted === true) onAbort();
      signal?.addEventListener("abort", onAbort, { once: true });
      return found.promise.finally(() => {
        waiting.delete(state);
        signal?.removeEventListener("abort", onAbort);
      });
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
}
