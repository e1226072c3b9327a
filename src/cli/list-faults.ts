import type { ServerStatus } from "../gateway/status.ts";
import type { ListFault, ListPart } from "../tools/fit/list-fault.ts";

const nouns: { readonly [Part in ListPart]: string } = {
  tools: "tool",
  resources: "resource",
  templates: "resource template",
  prompts: "prompt",
};

/** Most things of one kind that are named; `--json` has all. */
const maxNamed = 10;

/** What of a server's lists clients would refuse, and what the gateway made of it; empty if there is nothing. */
export function describeFaults({ name, leftOut = [], mended = [] }: ServerStatus): string {
  return [describe(name, leftOut, "left out"), describe(name, mended, "mended")].join("");
}

function describe(server: string, faults: readonly ListFault[], done: string): string {
  if (faults.length === 0) return "";
  const parts = Object.entries(nouns).flatMap(([part, noun]) => {
    const count = faults.filter((fault) => fault.part === part).length;
    return count === 0 ? [] : [`${count} ${noun}${count === 1 ? "" : "s"}`];
  });
  const lines = faults.slice(0, maxNamed).map(({ name, reason }) => `  ${name}: ${reason}\n`);
  const more = faults.length - lines.length;
  const rest = more === 0 ? "" : `  and ${more} more; --json has all\n`;
  return `\n${server}: ${parts.join(", ")} ${done}, because clients would refuse the whole list:\n${lines.join("")}${rest}`;
}
