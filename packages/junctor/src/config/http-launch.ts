import { type ConfigObject, type ConfigValue, refuse, warn } from "./config-value.ts";
import type { ServerLaunch } from "./config.ts";
import { readAnyText, readObject, readText } from "./value-readers.ts";

/** Where the URL may stand: clients disagree. */
export const urlKeys: readonly string[] = ["url", "serverUrl", "httpUrl"];
const urlExample = '"https://example.com/mcp"';

/** A server that is reached by HTTP. */
export function readHttpLaunch(entry: ConfigObject, transport: "auto" | "sse"): ServerLaunch | undefined {
  const [key = "url", other] = urlKeys.filter((key) => entry.has(key));
  if (other !== undefined) refuse(entry.get(other), `names the URL again: keep ${key} or ${other}`);
  for (const unused of ["args", "env", "envFile", "cwd"])
    if (entry.has(unused)) warn(entry.get(unused), "is not used: it is for servers with a command");
  const url = readUrl(entry.get(key));
  const headers = entry.has("headers") ? readHeaders(entry.get("headers")) : {};
  return url === undefined ? undefined : { kind: "http", url, headers, transport };
}

function readUrl(given: ConfigValue): string | undefined {
  const text = readText(given, urlExample);
  if (text === undefined) return undefined;
  const problem = findUrlProblem(text);
  if (problem !== undefined) return refuse(given, problem);
  // Some services take their key there: ?apiKey=…
  const { searchParams, pathname } = new URL(text);
  for (const [name, value] of searchParams)
    given.findings.hideSecret({ value, names: [name], isLikely: true });
  // A token may stand in the path; the words of a path have no digits, or are short.
  for (const value of pathname.split("/"))
    given.findings.hideSecret({ value, names: [], isLikely: value.length >= 8 && /\d/.test(value) });
  return text;
}

/** Says nothing of the URL itself: it may hold a key. */
function findUrlProblem(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text)) return `must begin with http:// or https://: write ${urlExample}`;
  if (!URL.canParse(text)) return `is not a URL: write ${urlExample}`;
  const { username, password } = new URL(text);
  if (username === "" && password === "") return undefined;
  return 'has a name or password in it, which is not sent: write "headers": { "Authorization": "Bearer ${TOKEN}" }';
}

export function readHeaders(given: ConfigValue): { readonly [name: string]: string } {
  const object = readObject(given, '"headers": { "Authorization": "Bearer ${TOKEN}" }');
  const headers: [string, string][] = [];
  const seen = new Set<string>();
  for (const [name, at] of object?.entries() ?? []) {
    if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(name))
      refuse(at, "is not the name of a header: use letters, digits and -");
    else if (seen.has(name.toLowerCase()))
      refuse(at, "is written twice, in upper and lower case: keep one of them");
    seen.add(name.toLowerCase());
    const value = readAnyText(at, '"Bearer ${TOKEN}"');
    if (value === undefined) continue;
    hideHeader(name, value, at);
    if (/^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(value)) headers.push([name, value]);
    else refuse(at, "has a line break or a character no header can carry: remove it");
  }
  return Object.fromEntries(headers);
}

/** The value, and what follows a scheme: a server may repeat the one without the other. */
function hideHeader(name: string, value: string, { findings }: ConfigValue): void {
  const [, credentials] = /^[A-Za-z]+ +(\S+)$/.exec(value) ?? [];
  for (const each of [value, credentials])
    if (each !== undefined) findings.hideSecret({ value: each, names: [name], isLikely: true });
}

/** Whether OAuth may be what a server wants: it has no credentials of its own in its headers. */
export function mayWantOAuth(launch: ServerLaunch): launch is Extract<ServerLaunch, { kind: "http" }> {
  if (launch.kind !== "http") return false;
  return !Object.keys(launch.headers).some((name) => name.toLowerCase() === "authorization");
}
