import type { Clock } from "@junctor/core/async";
import type { Naming, View } from "@junctor/core/compose";
import type { ListFault, ListPart } from "@junctor/core/fit";
import { clip } from "@junctor/core/schema";
import { createServerNames, toPublicName } from "../catalog/index.ts";
import type { DisabledServer, ServerConfig } from "../config/index.ts";
import type { Pins } from "../lock/index.ts";
import type { GatewayServer } from "../servers/index.ts";
import { type DescribeFailure, statusOf } from "../upstream/index.ts";

/** The member of a list's `_meta` that names, by server, things that are missing from it or were changed. */
const serversKey = "junctor/servers";

/** A fault as it is shown to callers and people. */
interface ShownFault {
  readonly name: string;
  readonly reason: string;
}

/** Things that were left out and things that were mended, apart; without an empty list. */
interface ShownFaults {
  readonly leftOut?: readonly ShownFault[];
  readonly mended?: readonly ShownFault[];
  /** How many things are held back because their definitions are not approved. Their names are left out: servers choose them. */
  readonly heldBack?: number;
}

/** The most faults of each kind that a list shows of one server. */
const maxShown = 20;

/** Faults as a list shows them. Where there are too many, the last entry says how many more. */
export function toShownFaults(faults: readonly ListFault[]): ShownFaults {
  const show = (isLeftOut: boolean): readonly ShownFault[] => {
    const all = faults.filter((fault) => fault.isLeftOut === isLeftOut);
    const shown = all.slice(0, maxShown).map(({ name, reason }) => ({ name, reason: clip(reason, 200) }));
    const more = all.length - shown.length;
    return more === 0 ? shown : [...shown, { name: "…", reason: `and ${more} more` }];
  };
  const [leftOut, mended] = [show(true), show(false)];
  return {
    ...(leftOut.length === 0 ? {} : { leftOut }),
    ...(mended.length === 0 ? {} : { mended }),
  };
}

/** What a note of a list is made from. */
interface NoteSources {
  readonly servers: readonly GatewayServer[];
  readonly disabled: readonly DisabledServer[];
  readonly naming: Naming;
  readonly clock: Pick<Clock, "now" | "date">;
  readonly pins?: Pins | undefined;
  /** How a failure is described; by its reason alone when left out. */
  readonly describeFailure?: DescribeFailure | undefined;
}

/** The note for one list of one caller; undefined when there is nothing to say. */
export type ListNote = { readonly [serversKey]: { readonly [server: string]: object } } | undefined;

/**
 * The note of a list about servers that are not up: how each is, whether its last list is part of this one, and whether the
 * server confirmed that list since it was started or the gateway only remembers it; and about servers of which something was
 * mended, left out or held back. A caller sees notes of the servers it may use. They do not say which variables a disabled server needs:
 * those concern only the person who runs the gateway.
 */
export function noteList(part: ListPart, view: View, sources: NoteSources): ListNote {
  const { servers, disabled, naming, pins } = sources;
  const isKnown = (config: Pick<ServerConfig, "name" | "prefix">): boolean => isKnownIn(view, config, naming);
  const known = servers.filter(({ config }) => isKnown(config));
  const missing = known.flatMap((server) => {
    const heldBack = pins?.heldBack(server.config.name, part, server.listedFor()[part]) ?? 0;
    const faults = toShownFaults(faultsFor(server, part, view, naming));
    return noteServer(server, sources, heldBack === 0 ? faults : { ...faults, heldBack });
  });
  const off = { status: "disabled", reason: "a variable it needs is not set", isListed: false };
  const all = [...missing, ...disabled.filter(isKnown).map(({ name }) => [name, off] as const)];
  return all.length === 0 ? undefined : { [serversKey]: Object.fromEntries<object>(all) };
}

/** Whether a caller may know of a server: it may use something of it, or anything that would be the server's. */
export function isKnownIn(
  view: View,
  { name, prefix }: Pick<ServerConfig, "name" | "prefix">,
  { separator }: Naming,
): boolean {
  return view.allows(`${prefix === false ? name : prefix}${separator}*`) || view.uses(name);
}

function noteServer(
  server: GatewayServer,
  { clock, describeFailure = ({ reason }) => reason }: NoteSources,
  faults: ShownFaults,
): readonly (readonly [string, object])[] {
  const { config, health } = server;
  const listed = server.listedFor();
  if (health.kind === "up" && listed.problems.length === 0 && listed.isConfirmed)
    return Object.keys(faults).length === 0 ? [] : [[config.name, { status: "up", ...faults }]];
  const failure =
    health.kind === "down"
      ? health
      : health.kind === "starting" || health.kind === "waiting"
        ? health.after
        : undefined;
  const reason = failure === undefined ? listed.problems.join("; ") : describeFailure(failure, config.name);
  const nextTryAt =
    health.kind === "down" && new Date(clock.date() + health.nextTryAt - clock.now()).toISOString();
  const { tools, prompts, resources, templates } = listed;
  const isListed = [tools, prompts, resources, templates].some(({ length }) => length > 0);
  const status =
    health.kind !== "up" ? statusOf(health) : listed.problems.length > 0 ? "incomplete" : "listing";
  const facts = {
    status,
    ...(reason === "" ? {} : { reason }),
    ...(nextTryAt && { nextTryAt }),
    isListed,
    ...faults,
  };
  const isRemembered = isListed && !listed.isConfirmed;
  return [[config.name, isRemembered ? { ...facts, isConfirmed: false } : facts]];
}

/** The faults of a server's things that a caller could use, by the names they have or would have for callers. */
function faultsFor(server: GatewayServer, part: ListPart, view: View, naming: Naming): readonly ListFault[] {
  const { config } = server;
  const faults = server.listedFor().faults.filter((fault) => fault.part === part);
  if (faults.length === 0) return [];
  const names = createServerNames(config, naming);
  return faults.filter(({ name }) => {
    if (part === "resources" || part === "templates") return view.allowsUri(config.name, name);
    const publicName = part === "tools" ? names.tool(name)?.name : toPublicName(config, name, naming);
    return publicName !== undefined && view.allows(publicName);
  });
}
