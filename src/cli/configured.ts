import { nearest } from "../errors/nearest.ts";
import type { GatewayConfig, ServerConfig } from "../gateway/config/config.ts";
import { startGateway } from "../gateway/gateway.ts";
import { readConfigFile } from "./config-file.ts";
import type { Destination } from "./destination.ts";
import { note } from "./print.ts";
import { toSafeLine } from "./terminal-text.ts";
import { UsageError } from "./usage-error.ts";

/** How long the servers of a config are waited for when a command needs their tools. */
const firstListMs = 30_000;

/** One server of a config, or all of them behind a gateway in this process. */
export async function openConfigured(
  file: string,
  named: string | undefined,
  timeoutMs: number | undefined,
): Promise<Destination> {
  const { config } = await readConfigFile(file);
  if (named !== undefined) return toDestination(findServer(config, named, file), timeoutMs);
  const gateway = await startGateway(config, {
    file,
    firstListMs: timeoutMs ?? firstListMs,
    unnamed: "trusted",
  });
  await gateway.ready;
  for (const { name, trouble } of gateway.status())
    if (trouble !== undefined)
      await note(`junctor: warning: ${toSafeLine(`${name} is missing: ${trouble}`)}\n`);
  return { target: { server: gateway.server }, headers: {}, timeoutMs, [Symbol.asyncDispose]: gateway.close };
}

function findServer({ servers, disabled }: GatewayConfig, name: string, file: string): ServerConfig {
  const found = servers.find((server) => server.name === name);
  if (found !== undefined) return found;
  const off = disabled.find((server) => server.name === name);
  if (off !== undefined) throw new UsageError(`${file}: ${name} is disabled: ${off.reason}`);
  const names = servers.map((server) => server.name);
  const meant = nearest(name, names);
  const hint = meant === undefined ? `it has ${names.join(", ") || "none"}` : `did you mean ${meant}?`;
  throw new UsageError(`${file} has no server ${JSON.stringify(name)}; ${hint}`);
}

function toDestination({ launch }: ServerConfig, timeoutMs: number | undefined): Destination {
  const rest = { timeoutMs, [Symbol.asyncDispose]: async () => {} };
  if (launch.kind === "http") return { target: launch.url, headers: launch.headers, ...rest };
  const { command, args, env, cwd } = launch;
  return { target: { command, args, env, ...(cwd === undefined ? {} : { cwd }) }, headers: {}, ...rest };
}
