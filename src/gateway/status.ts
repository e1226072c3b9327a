import type { ListFault } from "../tools/fit/list-fault.ts";
import type { Source } from "./catalog/catalog.ts";
import { describeHealth } from "./upstream/health.ts";

/** How one server is, for people and for `junctor check`. */
export interface ServerStatus {
  readonly name: string;
  readonly status: "idle" | "starting" | "up" | "down" | "stopped";
  readonly era?: "modern" | "legacy";
  readonly revision?: string;
  /** What it says its name and version are. */
  readonly says?: string;
  readonly tools: number;
  readonly resources: number;
  readonly prompts: number;
  /** What clients would refuse: things it lists that were left out, and things that were mended. */
  readonly leftOut?: readonly ListFault[];
  readonly mended?: readonly ListFault[];
  /** How long it took to connect. */
  readonly connectMs?: number;
  /** What is wrong, if something is. */
  readonly trouble?: string;
  /** The end of what its process wrote to its standard error stream before it failed. */
  readonly said?: string;
}

export function describeStatus(source: Source, now: number): ServerStatus {
  const { config, health } = source;
  const listed = source.listedFor("");
  const counts = {
    tools: listed.tools.length,
    resources: listed.resources.length + listed.templates.length,
    prompts: listed.prompts.length,
  };
  const leftOut = listed.faults.filter(({ isLeftOut }) => isLeftOut);
  const mended = listed.faults.filter(({ isLeftOut }) => !isLeftOut);
  const shared = {
    name: config.name,
    status: health.kind,
    ...counts,
    ...(leftOut.length === 0 ? {} : { leftOut }),
    ...(mended.length === 0 ? {} : { mended }),
  };
  if (health.kind !== "up") {
    if (health.kind === "idle") return shared;
    const failure = health.kind === "down" ? health : health.kind === "starting" ? health.after : undefined;
    const said = failure === undefined || failure.said === "" ? {} : { said: failure.said };
    return { ...shared, trouble: describeHealth(health, now), ...said };
  }
  const { mode, serverInfo } = health.agreement;
  return {
    ...shared,
    era: mode.kind,
    revision: mode.revision,
    ...(serverInfo === undefined ? {} : { says: `${serverInfo.name} ${serverInfo.version}` }),
    connectMs: health.connectMs,
    ...(listed.problems.length === 0 ? {} : { trouble: listed.problems.join("; ") }),
  };
}
