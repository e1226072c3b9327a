import { readCommandLaunch } from "./command-launch.ts";
import { type Group, type Part, toGroup } from "./config-value.ts";
import type { ServerLaunch } from "./config.ts";
import { checkEntryKeys } from "./entry-keys.ts";
import { allTools, type EntryTools, readEntryTools } from "./entry-tools.ts";
import type { Unset } from "./findings.ts";
import { readHttpLaunch, urlKeys } from "./http-launch.ts";
import { readChoice, readFlag, readGroup } from "./value-readers.ts";

/** One server of the file, used or not. */
export interface ServerEntry {
  readonly name: string;
  readonly path: string;
  /** Undefined when it is switched off, disabled, or wrong. */
  readonly launch: ServerLaunch | undefined;
  /** What to do about variables that it needs and that have no value; undefined when there are none. */
  readonly disabled: string | undefined;
  readonly tools: EntryTools;
}

const example = '{ "command": "npx", "args": ["-y", "a-server"] } or { "url": "https://example.com/mcp" }';

/** The three ways there are, and what other clients call them. */
const ways = ["stdio", "http", "sse"] as const;
type Way = (typeof ways)[number];
const aliases = new Map<unknown, Way>([
  ["streamable-http", "http"],
  ["streamableHttp", "http"],
  ["streamable_http", "http"],
  ["remote", "http"],
  ["local", "stdio"],
]);

/** The servers of both sections, `mcpServers`, as most clients have it, and VS Code's `servers`, in the file's order. */
export function readServerEntries(top: Group): readonly ServerEntry[] {
  const entries = top.entries().flatMap(([section, part]) => {
    if (section !== "mcpServers" && section !== "servers") return [];
    return readGroup(part, `"${section}": { "NAME": { "command": "npx" } }`)?.entries() ?? [];
  });
  const paths = new Map<string, string>();
  return entries.flatMap(([name, part]) => {
    const { path, reading } = part;
    const other = paths.get(name);
    if (other !== undefined) {
      reading.issue(path, `has the name of ${other}: rename or remove one of them`);
      return [];
    }
    paths.set(name, path);
    if (name.trim() === "") reading.issue(path, "has no name: write one between the quotes");
    return [{ name, path, ...readEntry(part) }];
  });
}

const unused = { launch: undefined, disabled: undefined, tools: allTools };

function readEntry(part: Part): Pick<ServerEntry, "launch" | "disabled" | "tools"> {
  const unset: Unset[] = [];
  const reading = part.reading.withUnset((fault) => void unset.push(fault));
  const entry = toGroup({ ...part, reading });
  if (entry === undefined) {
    part.reading.issue(part.path, `must be an object: write ${example}`);
    return unused;
  }
  // Mistakes in a server that is not used do no harm.
  const isOff = readFlag(entry.get("disabled")) === true || readFlag(entry.get("enabled")) === false;
  if (isOff) return unused;
  const launch = readLaunch(entry);
  const tools = readEntryTools(entry);
  if (unset.length === 0) return { launch, disabled: undefined, tools };
  return { launch: undefined, disabled: describeUnset(unset), tools };
}

function describeUnset(unset: readonly Unset[]): string {
  const advice = unset.map((fault) =>
    fault.kind === "unset" ? `set ${fault.name}, or write \${${fault.name}:-}` : fault.message,
  );
  const isOne = unset.length === 1;
  return `${isOne ? "a variable it needs is" : "variables it needs are"} not set: ${advice.join("; ")}`;
}

function readLaunch(entry: Group): ServerLaunch | undefined {
  const misspelt = checkEntryKeys(entry);
  const way = readWay(entry, misspelt);
  if (way !== undefined) return way === "stdio" ? readCommandLaunch(entry) : readHttpLaunch(entry, way);
  // For what else is wrong in it.
  readCommandLaunch(entry);
  readHttpLaunch(entry, "auto");
  return undefined;
}

/** Undefined when that is not clear, which has been reported then. */
function readWay(entry: Group, misspelt: ReadonlySet<string>): "stdio" | "auto" | "sse" | undefined {
  const { path, reading } = entry;
  const urlKey = urlKeys.find((key) => entry.has(key));
  const hasCommand = entry.has("command");
  if (hasCommand && urlKey !== undefined) {
    reading.issue(path, `has both command and ${urlKey}: keep the one the server is reached by`);
    return undefined;
  }
  if (!hasCommand && urlKey === undefined) {
    // One that is misspelt has been reported.
    if (!misspelt.has("command") && !urlKeys.some((key) => misspelt.has(key)))
      reading.issue(path, `has neither command nor url: write ${example}`);
    return undefined;
  }
  const said = readSaid(entry);
  if (said === "wrong") return undefined;
  if (said !== undefined && (said.way === "stdio") !== hasCommand) {
    const [has, right] = hasCommand ? ["command", "stdio"] : ["url", "http"];
    reading.issue(said.path, `does not fit a server with a ${has}: write "${right}", or leave it out`);
    return undefined;
  }
  if (hasCommand) return "stdio";
  return said?.way === "sse" ? "sse" : "auto";
}

/** What `type` says, or `transport`, its other name. */
function readSaid(entry: Group): { readonly way: Way; readonly path: string } | "wrong" | undefined {
  // Some clients have an object there, for themselves.
  const key = entry.has("type") ? "type" : "transport";
  const part = entry.get(key);
  if (!entry.has(key) || (key === "transport" && typeof part.value !== "string")) return undefined;
  const way = aliases.get(part.value) ?? readChoice(part, ways);
  return way === undefined ? "wrong" : { way, path: part.path };
}
