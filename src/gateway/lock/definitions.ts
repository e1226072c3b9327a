import { type GatewayServer, instructionsOf } from "../gateway-server.ts";
import { listParts } from "../upstream/known-lists.ts";
import type { Approved, LockPart } from "./lock-file.ts";
import { nameOf, type PinnedJson } from "./pins.ts";

/** What a server lists, as a lock would have it. */
export interface ListedDefinitions {
  readonly server: string;
  /** Undefined when not everything could be listed. */
  readonly definitions: Approved | undefined;
}

/** The definitions of servers that run. */
export function readDefinitions(
  servers: Iterable<GatewayServer>,
  toJson: PinnedJson,
): readonly ListedDefinitions[] {
  return Array.from(servers, (server) => {
    const listed = server.listedFor();
    const isWhole = server.health.kind === "up" && listed.isConfirmed && listed.problems.length === 0;
    return { server: server.config.name, definitions: isWhole ? toDefinitions(server, toJson) : undefined };
  });
}

function toDefinitions(server: GatewayServer, toJson: PinnedJson): Approved {
  const listed = server.listedFor();
  const toValue = (part: LockPart, item: unknown): unknown => JSON.parse(toJson(part, item));
  const definitions = new Map<LockPart, ReadonlyMap<string, unknown>>();
  const instructions = instructionsOf(server);
  if (instructions !== undefined)
    definitions.set("instructions", new Map([["", toValue("instructions", instructions)]]));
  for (const part of listParts)
    definitions.set(
      part,
      new Map(listed[part].map((item) => [nameOf(part, item), toValue(part, item)] as const)),
    );
  return definitions;
}
