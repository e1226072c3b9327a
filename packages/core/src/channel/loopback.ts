/**
 * Whether a server bound to this host can be reached from this machine only. Names other than `localhost` may
 * resolve to any address, so they do not count.
 */
export function isLoopback(host: string): boolean {
  if (host === "localhost" || host === "::1") return true;
  return /^127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$/.test(host);
}
