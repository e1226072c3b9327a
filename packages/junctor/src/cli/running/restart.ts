import { guardVariable } from "@junctor/client/internal";
import type { ServerReport } from "../../admin/index.ts";
import { junctor } from "../../invocation/index.ts";
import { askAdmin } from "../serve/index.ts";
import { note, print, type Run, toSafeLine, UsageError } from "../terminal/index.ts";
import { restartDaemon, restartServerOf } from "./daemon-control.ts";
import { findRunning, isDaemon, nothingRuns, onlyOne, type Running } from "./running.ts";

/** `junctor restart` */
export const restart: Run<"restart"> = async (parsed) => {
  const [name, more] = parsed.operands;
  if (more !== undefined)
    throw new UsageError(`restart takes the name of one server; ${junctor("status")} lists them`);
  // A server that may run commands could run this one.
  if (process.env[guardVariable] !== undefined)
    throw new UsageError("a server of a gateway cannot restart others; run this from a terminal of your own");
  const wanted = { config: parsed.flags.config, pid: parsed.flags.pid };
  const found = await findRunning(wanted);
  if (found.length === 0) throw nothingRuns(wanted);
  return name === undefined ? restartOne(found) : restartServer(name, found);
};

async function restartOne(found: readonly Running[]): Promise<number> {
  const [daemon] = onlyOne(found.filter(isDaemon));
  if (daemon === undefined)
    throw new UsageError(
      `no daemon runs; for a gateway of ${junctor("serve")}, write the name of one server`,
    );
  return restartDaemon(daemon.place, daemon.status.config);
}

async function restartServer(name: string, found: readonly Running[]): Promise<number> {
  const chosen = onlyOne(found);
  const [daemon] = chosen.filter(isDaemon);
  if (daemon !== undefined) return restartServerOf(daemon, name);
  const gateways = chosen.filter((running) => running.kind === "gateway");
  const path = `/api/servers/${encodeURIComponent(name)}/restart`;
  let exitCode = 0;
  for (const { socket, status: gateway } of gateways) {
    const { status, trouble } = (await askAdmin(socket, "POST", path, {})) as ServerReport;
    const where = gateway.worker === undefined ? "" : ` in worker ${gateway.worker.number}`;
    if (status === "up") await print(`${toSafeLine(name)} is up${where}\n`);
    else await note(`junctor: ${toSafeLine(`${name} is ${status}${where}: ${trouble ?? ""}`)}\n`);
    if (status !== "up") exitCode = 1;
  }
  return exitCode;
}
