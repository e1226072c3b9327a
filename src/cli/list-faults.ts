import type { ServerStatus } from "../gateway/status.ts";
import type { ListFault, ListPart } from "../tools/fit/list-fault.ts";

const nouns: { readonly [Part in ListPart]: string } = {
  tools: "tool",
  resources: "resource",
  templates: "resource template",
  prompts: "prompt",
};

/** Most reasons that are shown, and most names of one reason; `--json` has all. */
const maxShown = 10;

/** What of a server's lists clients would refuse, and what the gateway made of it; empty if there is nothing. */
export function describeFaults({ name, leftOut = [], mended = [] }: ServerStatus): string {
  return describe(name, leftOut, "left out") + describe(name, mended, "mended");
}

function describe(server: string, faults: readonly ListFault[], done: string): string {
  if (faults.length === 0) return "";
  const parts = (Object.keys(nouns) as ListPart[]).flatMap((part) => {
    const { length } = faults.filter((fault) => fault.part === part);
    return length === 0 ? [] : [`${length} ${toNoun(part, length)}`];
  });
  const groups = groupByReason(faults);
  const lines = groups.slice(0, maxShown).map((group) => `  ${toLine(group)}\n`);
  const more = groups.length - lines.length;
  const rest = more === 0 ? "" : `  and ${more} more reasons; --json has all\n`;
  return `\n${server}: ${parts.join(", ")} ${done}, because clients would refuse the whole list:\n${lines.join("")}${rest}`;
}

/** Most servers make one mistake in all their tools. */
function groupByReason(faults: readonly ListFault[]): readonly (readonly [ListFault, ...ListFault[]])[] {
  const groups = new Map<string, [ListFault, ...ListFault[]]>();
  for (const fault of faults) {
    const key = `${fault.part} ${fault.reason}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [fault]);
    else group.push(fault);
  }
  return [...groups.values()];
}

function toLine(group: readonly [ListFault, ...ListFault[]]): string {
  const [{ part, reason }] = group;
  const names = group.slice(0, maxShown).map(({ name }) => name);
  const more = group.length - names.length;
  const rest = more === 0 ? "" : ` and ${more} more`;
  return `${toNoun(part, group.length)} ${names.join(", ")}${rest}: ${reason}`;
}

function toNoun(part: ListPart, count: number): string {
  return count === 1 ? nouns[part] : `${nouns[part]}s`;
}
