import type { CassetteHead } from "../../author/index.ts";
import {
  type GatewayConfig,
  parseConfigValue,
  type ServerConfig,
  type ServerLaunch,
} from "../../config/index.ts";
import { type RunningGateway, startGateway } from "../../gateway/index.ts";
import { junctor } from "../../invocation/index.ts";
import { allSecrets, type GatewayLog } from "../../log/index.ts";
import { parseDestination, type ParsedTarget } from "../call/index.ts";
import { readConfigFile } from "../config/index.ts";
import { openLogins } from "../login/index.ts";
import { adviseOn, describeTrouble, ServerTrouble, UsageError } from "../terminal/index.ts";

/** A server that a command line names, kept alive as a gateway keeps it, under its own names. */
export interface OneServer extends AsyncDisposable {
  readonly gateway: RunningGateway;
  /** Its name in the gateway. */
  readonly name: string;
  /** What must not be written anywhere. */
  readonly secrets: readonly string[];
}

export async function openOneServer(
  parsed: ParsedTarget,
  named: string | undefined,
  log?: GatewayLog,
): Promise<OneServer> {
  const { config, file } = await readOne(parsed, named);
  const [server] = config.servers as readonly [ServerConfig];
  const gateway = await startGateway(config, {
    file,
    unnamed: "trusted",
    logins: openLogins(),
    ...(log === undefined ? {} : { log }),
  });
  return {
    gateway,
    name: server.name,
    secrets: allSecrets(config),
    [Symbol.asyncDispose]: () => gateway.close(),
  };
}

/** Who the server says it is. */
export function describeHead({ gateway, name }: OneServer): CassetteHead {
  const says = gateway.status().find((each) => each.name === name)?.says ?? "server 0.0.0";
  const at = says.lastIndexOf(" ");
  return { name: says.slice(0, at), version: says.slice(at + 1) };
}

/** Throws what is wrong with the server, if it did not come up. */
export async function assertUp({ gateway, name }: OneServer, launch?: ServerLaunch): Promise<void> {
  await gateway.ready;
  const status = gateway.status().find((each) => each.name === name);
  if (status === undefined || status.status === "up") return;
  const advice = launch === undefined ? undefined : adviseOn({ ...status, launch });
  throw new ServerTrouble(describeTrouble({ ...status, advice }));
}

async function readOne(
  parsed: ParsedTarget,
  named: string | undefined,
): Promise<{ readonly config: GatewayConfig; readonly file: string }> {
  if (parsed.flags.config !== undefined) {
    const { config, file } = await readConfigFile(parsed);
    if (named === undefined)
      throw new UsageError(`name one server of ${file}; ${junctor("check")} lists them`);
    const server = config.servers.find((each) => each.name === named);
    if (server === undefined) throw new UsageError(`${file} has no server ${JSON.stringify(named)}`);
    return { config: withOne(config, { ...server, prefix: false, start: "eager" }), file };
  }
  if (named === undefined && parsed.command === undefined)
    throw new UsageError("name a server: its URL, or its command after --");
  await using destination = await parseDestination(parsed, { server: named });
  const { target, headers } = destination;
  const folder = process.cwd();
  const placeholder = { mcpServers: { server: { command: "placeholder" } } };
  const config = parseConfigValue(placeholder, { env: {}, folder, file: "the command line" });
  const [server] = config.servers as readonly [ServerConfig];
  return {
    config: withOne(config, { ...server, prefix: false, launch: toLaunch(target, headers) }),
    file: "the command line",
  };
}

function withOne(config: GatewayConfig, server: ServerConfig): GatewayConfig {
  return { ...config, servers: [server], disabled: [] };
}

function toLaunch(target: unknown, headers: { readonly [name: string]: string }): ServerLaunch {
  if (typeof target === "object" && target !== null && "command" in target) {
    const { command, args, env } = target as {
      command: string;
      args?: readonly string[];
      env?: { [name: string]: string };
    };
    return { kind: "command", command, args: args ?? [], env: env ?? {}, cwd: undefined };
  }
  const url = String(target);
  if (!/^https?:/i.test(url)) throw new UsageError(`${url}: only http:// and https:// are served from here`);
  return { kind: "http", url, headers, transport: "auto" };
}
