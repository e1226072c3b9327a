import { StoreError } from "@junctor/core/errors";
import { parseStoreUrl } from "../cluster/index.ts";
import { type ConfigValue, refuse, toObject } from "./config-value.ts";
import type { GatewayConfig, ServerConfig, ServerLaunch } from "./config.ts";
import { readHost } from "./http-settings.ts";
import { readNumber, readObject, readText, refuseUnknownKeys } from "./value-readers.ts";

const storeExample = '"redis://cache.example.com:6379"';
const trunkExample = '"trunk": { "host": "10.0.0.5", "port": 7790 }';

/** The URL of the engine that replicas share. It may contain a password, so it is never shown. */
export function readStore(given: ConfigValue): GatewayConfig["store"] {
  const url = readText(given, storeExample);
  if (url === undefined) return undefined;
  given.findings.hide(url);
  try {
    const { password } = parseStoreUrl(url);
    if (password !== undefined) given.findings.hide(password);
    return url;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return refuse(given, `cannot be used: ${error.message}`);
  }
}

/** Where other replicas reach this one. */
export function readTrunk(given: ConfigValue): GatewayConfig["trunk"] {
  const object = readObject(given, trunkExample);
  if (object === undefined || !refuseUnknownKeys(object, ["host", "port", "advertise"])) return undefined;
  const host = readHost(object.get("host"));
  const port = readNumber(object.get("port"), { min: 0, max: 65_535, example: 7790 });
  const advertise = readHost(object.get("advertise"));
  if (!object.has("host") || !object.has("port"))
    return refuse(given, `needs host and port: write ${trunkExample}`);
  if (host === undefined || port === undefined) return undefined;
  if (isAnyAddress(host) && advertise === undefined)
    return refuse(given, 'listens on all addresses: write "advertise" too, the one that other replicas use');
  return { host, port, ...(advertise === undefined ? {} : { advertise }) };
}

/** Whether a host means every address of a machine, so that other replicas cannot use it as an address. */
export function isAnyAddress(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** Refuses a placement that its server cannot have. */
export function checkPlacement(
  given: ConfigValue,
  launch: ServerLaunch | undefined,
  sharing: ServerConfig["sharing"],
): void {
  const own = toObject(given)?.get("placement");
  if (own?.value !== "single" || launch?.kind !== "command" || sharing === "shared") return;
  const advice = 'processes of one session or call run where these are. Write "each", or leave it out';
  refuse(own, `cannot be "single" while "sharing" is "${sharing}": ${advice}`);
}

/** How often a server runs where the gateway has several replicas: once in all, or in each replica. */
export function placementOf({ placement, launch, sharing }: ServerConfig): "single" | "each" {
  if (launch.kind !== "command") return placement ?? "each";
  return sharing === "shared" ? (placement ?? "single") : "each";
}
