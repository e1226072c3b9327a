import { spawn } from "node:child_process";
import { program } from "./gateway.mjs";

/** @typedef {import("./world.mjs").World} World */
/** @typedef {{ name: string, status: string, era?: string, revision?: string, tools: number, connectMs?: number, trouble?: string, mended: number, leftOut: string[] }} Checked */

/**
 * What `junctor check --json` says about each server.
 *
 * @param {World} world
 * @param {{ config: string, timeoutSeconds: number }} options
 * @returns {Promise<{ servers: Checked[], exitCode: number | string, problem?: string }>}
 */
export async function runCheck(world, { config, timeoutSeconds }) {
  const args = [program, "check", "--config", config, "--json", "--timeout", String(timeoutSeconds)];
  const child = spawn(process.execPath, args, {
    cwd: world.desk,
    env: world.env("check"),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const late = AbortSignal.timeout((timeoutSeconds + 60) * 1000);
  late.addEventListener("abort", () => child.kill("SIGKILL"));
  let out = "";
  let err = "";
  child.stdout.setEncoding("utf8").on("data", (chunk) => (out += chunk));
  child.stderr.setEncoding("utf8").on("data", (chunk) => (err += chunk));
  const exitCode = await new Promise((resolve) =>
    child.on("exit", (code, signal) => resolve(signal ?? code)),
  );
  await new Promise((resolve) => setTimeout(resolve, 50));
  try {
    return { servers: toChecked(JSON.parse(out)), exitCode };
  } catch (error) {
    return { servers: [], exitCode, problem: `${String(error)}: ${err.slice(-1000)}` };
  }
}

/** @typedef {{ part: string, name: string, reason: string }} ListFault */

/** @param {any} report @returns {Checked[]} */
function toChecked(report) {
  const servers = Array.isArray(report) ? report : report.servers;
  return servers.map((/** @type {any} */ { leftOut = [], mended = [], ...rest }) => ({
    ...rest,
    mended: new Set(toolsAmong(mended).map(({ name }) => name)).size,
    leftOut: toolsAmong(leftOut).map(({ name, reason }) => `${name} (${reason})`),
  }));
}

/** @param {ListFault[]} faults */
function toolsAmong(faults) {
  return faults.filter(({ part }) => part === "tools");
}
