// Who is missing where, and why: an empty place in a table should not look like an oversight.

export const absences = [
  "fastmcp, sdk-v1: no 2026-07-28, by their own documentation",
  "sdk-v1-stateless, sdk-v2-session: small calls and streams only; a long answer costs them what it costs sdk-v1 and sdk-v2",
  "sdk-v2-session: its sessions are for legacy clients only",
  "mcp-proxy, supergateway: one upstream each, so not with 20 or more",
  "supergateway: an HTTP upstream only towards a stdio client; in 2026-07-28 it starts a child for every request",
  "mcp-hub: HTTP+SSE of 2024-11-05 towards its clients, so no 2026-07-28",
  "clients and stdio: the official SDKs; fastmcp and tmcp have no client and take part on stdio at start-up only",
];
