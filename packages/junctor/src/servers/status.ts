import type { FailureCode } from "@junctor/core/errors";
import type { ListFault } from "@junctor/core/fit";
import type { DisabledServer } from "../config/index.ts";
import type { Pins, Unapproved } from "../lock/index.ts";
import type { GatewayLog, Words } from "../log/index.ts";
import {
  type ConnectionStatus,
  describeHealth,
  statusOf,
  toSeconds,
  withLastWords,
} from "../upstream/index.ts";
import { type GatewayServer, instructionsOf } from "./gateway-server.ts";

/** The status of one server, for people and for `junctor check`. */
export interface ServerStatus {
  readonly name: string;
  readonly status: "idle" | "starting" | "up" | "down" | "stopped" | "disabled";
  readonly era?: "modern" | "legacy";
  readonly revision?: string;
  /** The name and version that the server reports. */
  readonly says?: string;
  /** How many tools clients see. With keys: clients whose key has no rules of its own. */
  readonly tools: number;
  readonly resources: number;
  readonly prompts: number;
  /** Definitions that clients would refuse: those that were left out, and those that were mended. */
  readonly leftOut?: readonly ListFault[];
  readonly mended?: readonly ListFault[];
  /** Definitions that are not the ones in the lock. */
  readonly unapproved?: readonly Unapproved[];
  /** Its processes, or its conversations over HTTP, each with its reason; only that for all callers when left out. */
  readonly connections?: readonly ConnectionStatus[];
  /** How long it took to connect. */
  readonly connectMs?: number;
  /** The problem, if there is one. */
  readonly trouble?: string;
  /** Why it failed last: like `trouble`, without when it is tried again. */
  readonly reason?: string;
  /** The same for programs: why it failed, `starting`, or `not_listed` when not everything could be listed. */
  readonly code?: FailureCode | "starting" | "not_listed";
  /** The end of what its process wrote to its standard error stream, when it failed, is still starting, or has not listed its tools. */
  readonly said?: string;
  /** The first line that its process wrote to its standard output and that is not an MCP message. */
  readonly stray?: string;
}

type StatusSource = Pick<
  GatewayServer,
  "config" | "health" | "isListed" | "listedFor" | "connections" | "words"
>;

const noWords: Words = { said: "", stray: "" };

/** How many things of a server callers see. */
export type ListedCounts = Pick<ServerStatus, "tools" | "resources" | "prompts">;

/** The status of a server now. */
export function describeStatus(
  source: StatusSource,
  now: number,
  counts: ListedCounts,
  pins?: Pins,
): ServerStatus {
  const { config, health, words = noWords } = source;
  const listed = source.listedFor();
  const stray = words.stray === "" ? {} : { stray: words.stray };
  const leftOut = listed.faults.filter(({ isLeftOut }) => isLeftOut);
  const mended = listed.faults.filter(({ isLeftOut }) => !isLeftOut);
  const unapproved = pins?.unapproved(config.name, listed, instructionsOf(source)) ?? [];
  const shared = {
    name: config.name,
    status: statusOf(health),
    ...counts,
    ...stray,
    ...(leftOut.length === 0 ? {} : { leftOut }),
    ...(mended.length === 0 ? {} : { mended }),
    ...(unapproved.length === 0 ? {} : { unapproved }),
    ...(source.connections === undefined || source.connections.length < 2
      ? {}
      : { connections: source.connections }),
  };
  const trouble = describeHealth(health, now, withLastWords);
  switch (health.kind) {
    case "idle":
      return shared;
    case "stopped":
      return { ...shared, trouble };
    case "waiting":
    case "starting":
      return {
        ...shared,
        trouble,
        ...(health.after === undefined ? {} : { reason: health.after.reason }),
        code: health.after?.code ?? "starting",
        ...toSaid(words.said, health.after?.said),
      };
    case "down":
      return {
        ...shared,
        trouble,
        reason: health.reason,
        code: health.code,
        ...toSaid(health.said, words.said),
      };
    case "up": {
      const { mode, serverInfo } = health.agreement;
      return {
        ...shared,
        era: mode.kind,
        revision: mode.revision,
        ...(serverInfo === undefined ? {} : { says: `${serverInfo.name} ${serverInfo.version}` }),
        connectMs: health.connectMs,
        ...describeListing(source, now),
        ...(source.isListed ? {} : toSaid(words.said)),
      };
    }
  }
}

/** What a server that is up could not list, or has not listed so far. Without its tools it is of no use yet. */
function describeListing(source: StatusSource, now: number): Pick<ServerStatus, "trouble" | "code"> {
  const { health, isListed } = source;
  const { problems } = source.listedFor();
  if (problems.length > 0) return { trouble: problems.join("; "), code: "not_listed" };
  if (isListed || health.kind !== "up") return {};
  const trouble = `its tools are still being listed, since ${toSeconds(now - health.since)}`;
  return { trouble, code: "not_listed" };
}

/** The first of these texts that says something. */
function toSaid(...texts: readonly (string | undefined)[]): Pick<ServerStatus, "said"> {
  const said = texts.find((text) => text !== undefined && text !== "");
  return said === undefined ? {} : { said };
}

/** The status of a server that needs a variable which is not set. */
export function describeDisabled({ name, reason }: DisabledServer): ServerStatus {
  return { name, status: "disabled", tools: 0, resources: 0, prompts: 0, trouble: reason };
}

/** The status of a server that is disabled; its trouble says why. */
export function logDisabled(
  log: GatewayLog,
  disabled: readonly DisabledServer[],
  before: readonly DisabledServer[],
): void {
  for (const { name, reason } of disabled) {
    if (before.some((other) => other.name === name && other.reason === reason)) continue;
    log.warn({ server: name, reason }, `${name} is disabled`);
  }
}
