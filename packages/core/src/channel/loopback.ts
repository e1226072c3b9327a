/** Whether a host to bind names this machine only. Names other than `localhost` may resolve anywhere, so they do not. */
export function isLoopback(host: string): boolean {
  if (host === "localhost" || host === "::1") return true;
  return /^127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$/.test(host);
}
