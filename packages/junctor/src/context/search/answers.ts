import { ToolError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import { definitionOf } from "@junctor/core/mcp";
import { nearest } from "@junctor/core/options";
import type { Outcome } from "@junctor/core/provider";
import { maxDescribed, maxSignatures, shownInAll, shownSignatures } from "./search-surface.ts";
import { signatureOf } from "./signature.ts";
import type { IndexedList } from "./tool-index.ts";

/** Characters of one answer of a search: less than 1,000 tokens, also of names that are many tokens each. */
const maxAnswer = 3000;

/** Answers `search_tools`: signatures of the best, then names of the next; without a query, the servers. */
export function answerSearch(index: IndexedList, args: unknown): Outcome {
  const { query, server, limit } = readSearch(args, index);
  if (query === undefined) return text(describeServers(index, server));
  const best = server === undefined ? index.best(query, shownInAll) : index.bestOf(server, query, shownInAll);
  if (best.length === 0)
    return text("No tool fits. Try other words, or leave out the query to see the servers.");
  const { byName } = index;
  const lines: string[] = [];
  let left = maxAnswer;
  for (const name of best.slice(0, limit)) {
    const tool = byName.get(name);
    const line = tool === undefined ? name : signatureOf(tool);
    left -= line.length + 1;
    if (left < 0) break;
    lines.push(line);
  }
  const names: string[] = [];
  for (const name of best.slice(lines.length)) {
    left -= name.length + 2;
    if (left < 0) break;
    names.push(name);
  }
  return text([...lines, ...(names.length === 0 ? [] : [`More: ${names.join(", ")}`])].join("\n"));
}

/** Answers `describe_tools`: each definition as the list has it. */
export function answerDescribe(index: IndexedList, args: unknown): Outcome {
  const { names } = readObject(args);
  if (!Array.isArray(names) || names.length === 0 || names.length > maxDescribed || !names.every(isText))
    throw refused(`"names" must be an array of 1 to ${maxDescribed} names of tools`);
  const { byName } = index;
  const content = (names as readonly string[]).map((name) => {
    const tool = byName.get(name);
    return { type: "text", text: tool === undefined ? unknownTool(name, index) : definitionOf(tool).text };
  });
  const isError = (names as readonly string[]).every((name) => !byName.has(name));
  return { kind: "complete", result: RawJson.fromValue({ content, ...(isError ? { isError } : {}) }) };
}

/** Most characters of a query, and of a name that is not there. */
const maxQuery = 1000;
/** Most names that are compared with one that is not there, letter by letter. */
const maxCompared = 1000;

/** The text for a model that used an unknown name. */
export function unknownTool(given: string, index: IndexedList): string {
  const name = given.length > maxQuery ? `${given.slice(0, maxQuery)}…` : given;
  const all = [...index.servers.values()].flat();
  const near = nearest(name, all.length > maxCompared ? index.best(name, maxCompared) : all);
  const three = [...new Set([...(near === undefined ? [] : [near]), ...index.best(name, 3)])].slice(0, 3);
  const hint = three.length === 0 ? "" : ` Nearest: ${three.join(", ")}.`;
  return `Unknown tool: ${JSON.stringify(name)}.${hint} Look for it with search_tools.`;
}

interface SearchArguments {
  readonly query: string | undefined;
  readonly server: string | undefined;
  readonly limit: number;
}

function readSearch(args: unknown, { servers }: IndexedList): SearchArguments {
  const { query, server, limit = shownSignatures } = readObject(args);
  if (query !== undefined && query !== null && !isText(query)) throw refused('"query" must be a string');
  if (isText(query) && query.length > maxQuery)
    throw refused(`"query" has ${query.length} characters; the limit is ${maxQuery}`);
  if (server !== undefined && server !== null && !(isText(server) && servers.has(server)))
    throw refused(`"server" must be one of the servers; leave out "query" to see them`);
  const isLimit =
    typeof limit === "number" && Number.isInteger(limit) && limit >= 1 && limit <= maxSignatures;
  if (!isLimit) throw refused(`"limit" must be a whole number from 1 to ${maxSignatures}`);
  const asked = isText(query) && query.trim() !== "" ? query : undefined;
  return { query: asked, server: isText(server) ? server : undefined, limit };
}

/** The servers and how many tools each has; of one server, the names of its tools. */
function describeServers({ servers }: IndexedList, server: string | undefined): string {
  const counts = [...servers].map(([name, tools]) => `${name} (${tools.length})`);
  const parts = server === undefined ? counts : (servers.get(server) ?? []);
  let shown = "";
  for (const [number, part] of parts.entries()) {
    if (shown.length + part.length > maxAnswer) return `${shown}, and ${parts.length - number} more`;
    shown += number === 0 ? part : `, ${part}`;
  }
  return shown === "" ? "There are no tools." : shown;
}

/** The arguments of a tool of our own, which must be an object. */
function readObject(args: unknown): { readonly [key: string]: unknown } {
  if (typeof args !== "object" || args === null || Array.isArray(args))
    throw refused("The arguments must be an object");
  return args as { readonly [key: string]: unknown };
}

export function refused(message: string): ToolError {
  return new ToolError(message, { code: "tool.invalid_arguments" });
}

function text(value: string): Outcome {
  return { kind: "complete", result: RawJson.fromValue({ content: [{ type: "text", text: value }] }) };
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}
