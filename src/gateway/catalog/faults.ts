import { clip } from "../../schema/issue.ts";
import type { ListFault } from "../../tools/fit/list-fault.ts";
import type { Naming } from "../../tools/namespace.ts";
import type { ServerConfig } from "../config/config.ts";
import type { Claim } from "./merge.ts";
import { createToolNames } from "./names.ts";
import { toPublicName } from "./public-name.ts";

/** What of a server was mended or left out, under the names it has or would have for callers: policy goes by those. */
export function claimFaults(
  config: ServerConfig,
  faults: readonly ListFault[],
  naming: Naming,
): readonly Claim<ListFault>[] {
  if (faults.length === 0) return [];
  const toolName = createToolNames(config, naming);
  const keyOf = ({ part, name }: ListFault): string | undefined => {
    if (part === "tools") return toolName(name)?.key;
    return part === "prompts" ? toPublicName(config, name, naming) : name;
  };
  return faults.flatMap((item) => {
    const key = keyOf(item);
    return key === undefined ? [] : [{ key, item, server: config.name, ownName: item.name }];
  });
}

/** A fault as callers and people are told of it. */
export interface ToldFault {
  readonly name: string;
  readonly reason: string;
}

/** What was left out and what was mended, apart; without what there is none of. */
export interface ToldFaults {
  readonly leftOut?: readonly ToldFault[];
  readonly mended?: readonly ToldFault[];
}

/** Most faults of each kind that a list tells of one server. */
const maxTold = 20;

/** As many faults as belong in a list. Where there are more, the last one says how many. */
export function tellFaults(faults: readonly ListFault[]): ToldFaults {
  const tell = (isLeftOut: boolean): readonly ToldFault[] => {
    const all = faults.filter((fault) => fault.isLeftOut === isLeftOut);
    const told = all.slice(0, maxTold).map(({ name, reason }) => ({ name, reason: clip(reason, 200) }));
    const more = all.length - told.length;
    return more === 0 ? told : [...told, { name: "…", reason: `and ${more} more` }];
  };
  const [leftOut, mended] = [tell(true), tell(false)];
  return {
    ...(leftOut.length === 0 ? {} : { leftOut }),
    ...(mended.length === 0 ? {} : { mended }),
  };
}
