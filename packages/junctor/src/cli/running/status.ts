import type { ServerReport, Servers, Status } from "../../admin/index.ts";
import { junctor } from "../../invocation/index.ts";
import { askAdmin } from "../serve/index.ts";
import { print, refuseOperands, type Run, toRows, toSafeLine } from "../terminal/index.ts";
import { describeDaemon } from "./daemon-control.ts";
import { findRunning, nothingRuns, pageOf, type Running } from "./running.ts";

/** `junctor status` */
export const status: Run<"status"> = async (parsed) => {
  refuseOperands("status", parsed);
  const wanted = { config: parsed.flags.config, pid: parsed.flags.pid };
  const found = await findRunning(wanted);
  if (found.length === 0) throw nothingRuns(wanted);
  const shown = await Promise.all(found.map((running) => look(running)));
  if (parsed.flags.json) await print(shown.map(({ json }) => `${JSON.stringify(json)}\n`).join(""));
  else await print(shown.map(({ text }) => text).join("\n"));
  return shown.some(({ isDown }) => isDown) ? 1 : 0;
};

interface Look {
  readonly text: string;
  readonly json: object;
  readonly isDown: boolean;
}

async function look(running: Running): Promise<Look> {
  const { kind, status: facts } = running;
  const isDown = (server: { readonly status: string }): boolean => server.status === "down";
  if (running.kind === "daemon") {
    const all = running.status.gateways.flatMap(({ servers }) => servers);
    const text = describeDaemon(running.status) + describePage(running);
    return { text, json: { kind, ...facts }, isDown: all.some(isDown) };
  }
  const { servers } = (await askAdmin(running.socket, "GET", "/api/servers")) as Servers;
  const text = describe(running.status, servers) + describePage(running);
  return { text, json: { kind, ...facts, servers }, isDown: servers.some(isDown) };
}

function describe(gateway: Status, servers: readonly ServerReport[]): string {
  const { pid, version, state, uptimeMs, url, config, calls, sessions, parked, problems = 0 } = gateway;
  const { worker } = gateway;
  const which = worker === undefined ? "" : `worker ${worker.number} of ${worker.count}, `;
  const head = `The gateway of ${junctor("serve")} (${which}process ${pid}, junctor ${version}) is ${state} since ${toDuration(uptimeMs)}${url === undefined ? "" : `, on ${url}`}.`;
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
          `${problems === 1 ? "1 problem" : `${problems} problems`}: ${junctor("check")} tells of the config, ${junctor("logs")} of the rest.`,
        ]),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

function describePage(running: Running): string {
  const page = pageOf(running);
  if (page === undefined) return "";
  // A key is shown to a person, and written to no file.
  const [address = "", key] = page.split("#");
  const shown = process.stdout.isTTY || key === undefined ? page : `${address} (${junctor("open")} opens it)`;
  return `\nPage: ${shown}\n`;
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
}: ServerReport): readonly string[] {
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
