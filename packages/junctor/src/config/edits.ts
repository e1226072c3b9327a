import { isDeepStrictEqual } from "node:util";
import { describeCommand } from "@junctor/client/internal";
import type { JsonObject } from "@junctor/core/json";
import { junctor } from "../invocation/index.ts";
import { allSecrets, createHide, hideInData, joinSecrets } from "../log/index.ts";
import { type DisabledServer, type GatewayConfig, isOpen, type ServerConfig } from "./config.ts";
import { launchRows, outlineOf } from "./entry-rows.ts";
import { gatewayRows } from "./gateway-rows.ts";
import { type Effect, narrowRows, type Rows } from "./rows.ts";
import { serverRows } from "./server-rows.ts";
import { joinPath } from "./value-readers.ts";

/** What may be used of an edited config before a person agrees to the edit. */
interface AgreedPart {
  readonly config: GatewayConfig;
  /** The settings that wait for a person, each as a path with its change; nothing is cut. */
  readonly waiting: readonly string[];
}

/**
 * Splits an edit: whatever takes something away is used at once; whatever starts, reaches, loads or writes something else
 * than the agreed config, or loosens one of its rules, waits. A tool that may write the file could make any edit.
 * Of what waits, only agreed secrets and values of the environment are hidden: else an edit could hide what it would start.
 */
export function toAgreedPart(
  next: GatewayConfig,
  agreed: GatewayConfig,
  env: { readonly [name: string]: string | undefined } = process.env,
): AgreedPart {
  const waiting: string[] = [];
  const known = new Map(agreed.servers.map((server) => [server.name, server]));
  const servers: ServerConfig[] = [];
  const disabled: DisabledServer[] = [...next.disabled];
  for (const server of next.servers) {
    const { name, prefix, audit } = server;
    const before = known.get(name);
    if (before !== undefined) servers.push(narrowServer(server, before, waiting));
    else {
      waiting.push(`${name} (new: ${describeLaunch(server)})`);
      disabled.push({ name, prefix, tools: {}, audit, reason: waits });
    }
  }
  const rest = narrowRows(gatewayRows, withoutNewWay(next, agreed, waiting), agreed);
  waiting.push(...rest.waiting.map((key) => `junctor.${key}`));
  const envValues = new Set(Object.values(env));
  const hidden = joinSecrets(
    allSecrets(agreed),
    allSecrets(next).filter((secret) => envValues.has(secret)),
  );
  const hide = createHide(() => hidden);
  // Only secrets of launches in use: every line of the log is searched for each of them.
  const { secrets, ownSecrets } = waiting.length === 0 ? next : agreed;
  return {
    config: { ...rest.value, servers, disabled, secrets, ownSecrets },
    waiting: hideInData(waiting, hide),
  };
}

const waits = `it is new in the config and waits for you: run "${junctor("reload")}"`;

/** The settings of a server, and what its entry becomes. */
const ofServer: Rows = { ...launchRows, ...serverRows };

/** The part of a server's edit that may be used now. */
function narrowServer(next: ServerConfig, agreed: ServerConfig, waiting: string[]): ServerConfig {
  const narrowed = narrowRows(ofServer, next, agreed);
  waiting.push(...narrowed.waiting.map((key) => describeEdit(key, next, agreed)));
  return narrowed.value;
}

/** Two configs of a server with the same key can share a process: they differ in nothing that it depends on. */
export function toProcessKey(server: ServerConfig): string {
  return toKey(server, (key) => ofServer[key]?.effect === "server");
}

/** The same for gateways that share an upstream, which reads further settings while it runs. */
export function toUpstreamKey(server: ServerConfig): string {
  return toKey(server, (key) => ofServer[key]?.effect === "server" || readByUpstream.has(key));
}

const readByUpstream: ReadonlySet<string> = new Set<keyof ServerConfig>([
  ...(["start", "startTimeoutMs", "maxStartMs", "timeoutMs", "maxTotalMs", "answerWithinMs"] as const),
  ...(["maxConnections", "idleStopMs", "tasks"] as const),
]);

function toKey(server: ServerConfig, counts: (key: string) => boolean): string {
  const settings: JsonObject = { ...server };
  const keys = Object.keys(ofServer).filter(counts);
  return JSON.stringify([server.name, ...keys.map((key) => settings[key] ?? null)]);
}

/** The settings that differ and count only from the next start of the gateway on, each by its path. */
export function listForNextStart(next: GatewayConfig, running: GatewayConfig): readonly string[] {
  return listEdits(gatewayRows, next, running, "junctor").flatMap(({ path, effect }) =>
    effect === "gateway" ? [path] : [],
  );
}

interface Edit {
  readonly path: string;
  readonly effect: Effect;
}

/** The settings that differ; where both are objects, the settings in them. */
function listEdits(rows: Rows, next: object, running: object, path: string): readonly Edit[] {
  const [now, before] = [new Map(Object.entries(next)), new Map(Object.entries(running))];
  return Object.entries(rows).flatMap(([key, { type, effect }]): readonly Edit[] => {
    const [one, other] = [now.get(key) as unknown, before.get(key) as unknown];
    if (isDeepStrictEqual(one, other)) return [];
    const at = joinPath(path, key);
    const areObjects = [one, other].every((each) => typeof each === "object" && each !== null);
    return type.rows !== undefined && areObjects
      ? listEdits(type.rows, one as object, other as object, at)
      : [{ path: at, effect }];
  });
}

function describeEdit(key: string, next: ServerConfig, agreed: ServerConfig): string {
  if (key !== "launch") return `${next.name}.${key}`;
  const changed = listChanged(next.launch, agreed.launch);
  return `${next.name} (${changed.join(", ")}: ${describeLaunch(next)})`;
}

/** The names of members that differ; of variables and headers each by its own name. */
function listChanged(now: object, before: object): readonly string[] {
  const [one, other] = [new Map(Object.entries(now)), new Map(Object.entries(before))];
  return [...new Set([...one.keys(), ...other.keys()])].flatMap((part) => {
    const [value, last] = [one.get(part) as unknown, other.get(part) as unknown];
    if (isDeepStrictEqual(value, last)) return [];
    const isNamed = part === "env" || part === "headers";
    return isNamed ? listChanged(value ?? {}, last ?? {}).map((name) => `${part} ${name}`) : [part];
  });
}

/** What would run or be reached, with the names of its variables or headers, whose values are not for the log. */
function describeLaunch({ launch }: Pick<ServerConfig, "launch">): string {
  const isHttp = "headers" in launch;
  const { words, names: all } = outlineOf(launch);
  const names = all.join(", ");
  const notes = [
    isHttp || launch.cwd === undefined ? "" : ` (in ${describeCommand({ command: launch.cwd })})`,
    isHttp || launch.envFile === undefined ? "" : ` (reads ${describeCommand({ command: launch.envFile })})`,
    names === "" ? "" : ` (${isHttp ? "sends" : "sets"} ${names})`,
  ].join("");
  const text = words.map(([command = "", ...args]) =>
    isHttp ? command : describeCommand({ command, args }),
  );
  return `${text.join("; ")}${notes}`;
}

/** Where callers come with tokens or certificates only, the first key is a new way in. */
function withoutNewWay(next: GatewayConfig, agreed: GatewayConfig, waiting: string[]): GatewayConfig {
  if (agreed.keys.length > 0 || isOpen(agreed) || next.keys.length === 0) return next;
  waiting.push("junctor.keys");
  return { ...next, keys: [] };
}
