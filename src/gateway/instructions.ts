import type { Upstream } from "./upstream/upstream.ts";

/** Longest text made of all servers' instructions: it goes into every conversation with a model. */
const maxLength = 16 * 1024;

/** What servers say about how to use them, each under its name; undefined when none says anything. */
export function joinInstructions(upstreams: Iterable<Pick<Upstream, "name" | "health">>): string | undefined {
  const parts = Array.from(upstreams, ({ name, health }) => {
    const text = health.kind === "up" ? health.agreement.instructions?.trim() : undefined;
    return text === undefined || text === "" ? "" : `# ${name}\n${text}`;
  }).filter((part) => part !== "");
  const joined = parts.join("\n\n");
  return joined === "" ? undefined : cut(joined);
}

/** Not in the middle of a character. */
function cut(text: string): string {
  if (text.length <= maxLength) return text;
  return text.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, "");
}
