import { type AdminStatus, askAdmin, chooseAdmin } from "./admin-client.ts";
import { type Command, refuseOperands } from "./command.ts";
import { print } from "./print.ts";
import { toRows, toSafeLine } from "./terminal-text.ts";

/** Flags that say which gateway is meant. */
export const gatewayFlags: Command["flags"] = {
  config: { value: "FILE", help: "the gateway that was started with this config" },
  pid: { value: "PID", help: "the gateway with this process number" },
};

/** A server, as `GET /api/servers` has it. */
interface ShownServer {
  readonly name: string;
  readonly status: string;
  readonly tools: number;
  readonly inFlight?: number;
  readonly restarts?: number;
  readonly revision?: string;
  readonly trouble?: string;
  readonly advice?: string;
}

/** `junctor status` */
export const status: Command = {
  name: "status",
  summary: "Show how a running gateway and its servers are.",
  flags: { ...gatewayFlags, json: { help: "as JSON" } },
  examples: ["junctor status", "junctor status --config .mcp.json --json"],
  run: async (parsed) => {
    refuseOperands("status", parsed);
    const { socket, status: gateway } = await chooseAdmin(parsed.valueOf("config"), parsed.valueOf("pid"));
    const { servers } = (await askAdmin(socket, "GET", "/api/servers")) as {
      readonly servers: readonly ShownServer[];
    };
    if (parsed.has("json")) await print(`${JSON.stringify({ ...gateway, servers })}\n`);
    else await print(describe(gateway, servers));
    return servers.some((server) => server.status === "down") ? 1 : 0;
  },
};

function describe(gateway: AdminStatus, servers: readonly ShownServer[]): string {
  const { pid, version, state, uptimeMs, url, config, calls, sessions, parked, problems, pageUrl } = gateway;
  const head = `Junctor ${version}, process ${pid}, is ${state} since ${toDuration(uptimeMs)}${url === undefined ? "" : `, on ${url}`}.`;
  const counts = `${calls.underway} calls underway, ${calls.total} answered, ${calls.failed} failed; ${sessions} sessions, ${parked} parked calls.`;
  const rows = toRows(servers.map(toRow)).map((row) => `  ${row}`);
  const lines = [
    head,
    ...(config === undefined ? [] : [`Config: ${toSafeLine(config)}`]),
    counts,
    "",
    ...rows,
    ...(problems === 0
      ? []
      : [
          "",
          `${problems === 1 ? "1 problem" : `${problems} problems`}: junctor check tells of the config, junctor logs of the rest.`,
        ]),
    // A key is shown to a person, and written to no file.
    ...(pageUrl !== undefined && process.stdout.isTTY ? ["", `See it: ${pageUrl}`] : []),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

function toRow({
  name,
  status: state,
  tools,
  inFlight = 0,
  restarts = 0,
  trouble,
  advice,
  revision,
}: ShownServer): readonly string[] {
  const facts = [
    state === "up" ? `${tools === 1 ? "1 tool" : `${tools} tools`}, ${revision ?? ""}` : "",
    inFlight === 0 ? "" : `${inFlight} underway`,
    restarts === 0 ? "" : `started again ${restarts === 1 ? "once" : `${restarts} times`}`,
    trouble ?? "",
    advice ?? "",
  ];
  return [name, state, facts.filter(Boolean).join("; ")];
}

function toDuration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
}
