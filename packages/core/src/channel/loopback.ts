import { isIP } from "node:net";

/** Whether a host to bind names this machine only. Names other than `localhost` may resolve anywhere, so they do not. */
export function isLoopback(host: string): boolean {
  if (host === "localhost" || host === "::1") return true;
  return isIP(host) === 4 && host.startsWith("127.");
}
