import { resolve } from "node:path";
import { isLoopback } from "@junctor/core/channel";
import { BindError } from "@junctor/core/errors";
import { isOpen, type GatewayConfig, parseConfigValue } from "../../config/index.ts";
import { assertProfile, type ConfigFile, findConfigFile } from "../config/index.ts";
import { type ParsedOf, parsePort, refuseOperands, UsageError } from "../terminal/index.ts";
import { type ReloadChoice, reloadChoices } from "./follow-config.ts";

/** What `junctor serve` is to serve, and how: the command line and the config, checked. Plain data. */
export interface ServePlan {
  /** Undefined for the demo. */
  readonly opened: ConfigFile | undefined;
  /** The config of the file, or the defaults without one. */
  readonly config: GatewayConfig;
  /** The path of the config, or `demo`: tokens of one do not open at another. */
  readonly served: string;
  readonly transport: "http" | "stdio" | "tcp";
  readonly host: string;
  readonly port: number;
  /** The profile that is served alone. */
  readonly profile: string | undefined;
  readonly choice: ReloadChoice;
  readonly level: string;
  /** Whether the command line says the level, whatever the config says now or later. */
  readonly isLevelGiven: boolean;
}

/** Reads the command line and the config. Asks a person about a config that was found. Throws `UsageError` and `BindError`. */
export async function readServePlan(parsed: ParsedOf<"serve">): Promise<ServePlan> {
  assertSensible(parsed);
  const opened = await findConfigFile(parsed, !parsed.flags.stdio);
  const config = opened?.config ?? noConfig;
  const host = parsed.flags.host ?? config.http.host ?? "127.0.0.1";
  assertKeys(host, config, parsed);
  const profile = parsed.flags.profile;
  if (profile !== undefined) assertProfile(config, profile, undefined, opened?.file);
  const tcp = parsed.flags.tcp;
  const port =
    tcp === undefined
      ? parsePort("port", parsed.flags.port ?? String(config.http.port ?? 7780))
      : parsePort("tcp", tcp);
  return {
    opened,
    config,
    served: opened === undefined ? "demo" : resolve(opened.file),
    transport: parsed.flags.stdio ? "stdio" : tcp === undefined ? "http" : "tcp",
    host,
    port,
    profile,
    choice: reloadChoiceOf(parsed),
    level: levelOf(parsed, opened),
    isLevelGiven: parsed.flags["log-level"] !== undefined,
  };
}

function assertSensible(parsed: ParsedOf<"serve">): void {
  refuseOperands("serve", parsed);
  const transports = [
    parsed.flags.stdio ? "--stdio" : undefined,
    parsed.flags.tcp === undefined ? undefined : "--tcp",
    parsed.flags.port === undefined ? undefined : "--port",
  ].filter((flag) => flag !== undefined);
  if (transports.length > 1) throw new UsageError(`choose one of ${transports.join(" and ")}`);
  if (parsed.flags.stdio && parsed.flags.host !== undefined)
    throw new UsageError("--stdio listens on no address; leave out --host");
}

const levels = ["trace", "debug", "info", "warn", "error", "silent"];

function levelOf(parsed: ParsedOf<"serve">, opened: ConfigFile | undefined): string {
  // The demo logs warnings only: its greeting says the rest.
  const usual = opened?.config.log.level ?? "warn";
  const level = parsed.flags["log-level"] ?? usual;
  if (!levels.includes(level))
    throw new UsageError(`--log-level needs one of ${levels.join(", ")}, not ${JSON.stringify(level)}`);
  return level;
}

function reloadChoiceOf(parsed: ParsedOf<"serve">): ReloadChoice {
  const value = parsed.flags.reload ?? "safe";
  const choice = reloadChoices.find((candidate) => candidate === value);
  if (choice !== undefined) return choice;
  throw new UsageError(`--reload needs one of ${reloadChoices.join(", ")}, not ${JSON.stringify(value)}`);
}

/** Others may reach an address that is not this machine's own, so they must be known. */
function assertKeys(host: string, config: GatewayConfig, parsed: ParsedOf<"serve">): void {
  if (parsed.flags.stdio || isLoopback(host)) return;
  if (parsed.flags.tcp !== undefined) throw new BindError(host, "there are no keys on a TCP port");
  if (!isOpen(config)) return;
  throw new BindError(
    host,
    'the config has neither keys nor issuers: write "junctor": { "keys": { "NAME": { "env": "VARIABLE" } } }',
  );
}

/** The settings without a config. */
const noConfig: GatewayConfig = parseConfigValue({ junctor: {} }, { file: "no config", env: {} });
