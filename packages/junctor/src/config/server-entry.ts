import { readCommandLaunch } from "./command-launch.ts";
import { type ConfigObject, type ConfigValue, refuse, toObject } from "./config-value.ts";
import type { ServerLaunch } from "./config.ts";
import { allTools, checkEntryKeys, type EntryTools, readEntryTools } from "./entry-keys.ts";
import type { Unset } from "./findings.ts";
import { readHttpLaunch, urlKeys } from "./http-launch.ts";
import { readChoice, readFlag, readObject } from "./value-readers.ts";

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

const maxServers = 1000;

/** The servers of both sections, `mcpServers`, as most clients have it, and VS Code's `servers`, in the file's order. */
export function readServerEntries(top: ConfigObject): readonly ServerEntry[] {
  const entries = top.entries().flatMap(([section, given]) => {
    if (section !== "mcpServers" && section !== "servers") return [];
    return readObject(given, `"${section}": { "NAME": { "command": "npx" } }`)?.entries() ?? [];
  });
  if (entries.length > maxServers)
    return refuse(top, `has ${entries.length} servers: ${maxServers} may be there`) ?? [];
  const paths = new Map<string, string>();
  return entries.flatMap(([name, given]) => {
    const { path } = given;
    const other = paths.get(name);
    if (other !== undefined)
      return refuse(given, `has the name of ${other}: rename or remove one of them`) ?? [];
    paths.set(name, path);
    if (name.trim() === "") refuse(given, "has no name: write one between the quotes");
    return [{ name, path, ...readEntry({ ...given, findings: given.findings.ofServer(name) }) }];
  });
}

const unused = { launch: undefined, disabled: undefined, tools: allTools };

function readEntry(given: ConfigValue): Pick<ServerEntry, "launch" | "disabled" | "tools"> {
  const unset: Unset[] = [];
  const findings = given.findings.withUnset((fault) => void unset.push(fault));
  const entry = toObject({ ...given, findings });
  if (entry === undefined) return refuse(given, `must be an object: write ${example}`) ?? unused;
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

function readLaunch(entry: ConfigObject): ServerLaunch | undefined {
  const misspelt = checkEntryKeys(entry);
  const way = readWay(entry, misspelt);
  if (way !== undefined) return way === "stdio" ? readCommandLaunch(entry) : readHttpLaunch(entry, way);
  // For what else is wrong in it.
  readCommandLaunch(entry);
  readHttpLaunch(entry, "auto");
  return undefined;
}

/** Undefined when that is not clear, which has been reported then. */
function readWay(entry: ConfigObject, misspelt: ReadonlySet<string>): "stdio" | "auto" | "sse" | undefined {
  const urlKey = urlKeys.find((key) => entry.has(key));
  const hasCommand = entry.has("command");
  if (hasCommand && urlKey !== undefined)
    return refuse(entry, `has both command and ${urlKey}: keep the one the server is reached by`);
  if (!hasCommand && urlKey === undefined) {
    // One that is misspelt has been reported.
    const isReported = misspelt.has("command") || urlKeys.some((key) => misspelt.has(key));
    return isReported ? undefined : refuse(entry, `has neither command nor url: write ${example}`);
  }
  const said = readSaid(entry);
  if (said === "wrong") return undefined;
  if (said !== undefined && (said.way === "stdio") !== hasCommand) {
    const [has, right] = hasCommand ? ["command", "stdio"] : ["url", "http"];
    return refuse(said.given, `does not fit a server with a ${has}: write "${right}", or leave it out`);
  }
  if (hasCommand) return "stdio";
  return said?.way === "sse" ? "sse" : "auto";
}

/** What `type` says, or `transport`, its other name. */
function readSaid(
  entry: ConfigObject,
): { readonly way: Way; readonly given: ConfigValue } | "wrong" | undefined {
  // Some clients have an object there, for themselves.
  const key = entry.has("type") ? "type" : "transport";
  const given = entry.get(key);
  if (!entry.has(key) || (key === "transport" && typeof given.value !== "string")) return undefined;
  const way = aliases.get(given.value) ?? readChoice(given, ways);
  return way === undefined ? "wrong" : { way, given };
}
