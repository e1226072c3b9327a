import { createApiFetch } from "@junctor/client/internal";
import { isObject, launchOf, type Needed, type RegistryLaunch } from "./launch.ts";

export type { Needed, RegistryLaunch } from "./launch.ts";

/** The registry that the project of the protocol runs. */
export const officialRegistry = "https://registry.modelcontextprotocol.io";

const maxBytes = 4 * 1024 * 1024;
const timeoutMs = 20_000;
const maxFound = 100;

/** A server as a registry lists it. */
export interface ListedServer {
  readonly name: string;
  readonly version: string;
  readonly description: string;
}

/** Servers whose names have all of the words, newest versions only. Rejects with an error that says what was wrong with the answer. */
export async function searchRegistry(
  base: string,
  words: string,
  signal: AbortSignal,
): Promise<readonly ListedServer[]> {
  const url = toUrl(base, "servers");
  url.search = new URLSearchParams({ search: words, version: "latest", limit: String(maxFound) }).toString();
  const { servers } = await ask(url, signal);
  if (!Array.isArray(servers)) throw new Error(`${url.host} is no registry: its answer has no "servers"`);
  return servers.slice(0, maxFound).flatMap((each: unknown) => {
    const server = isObject(each) ? each["server"] : undefined;
    if (!isObject(server) || statusOf(each) === "deleted") return [];
    const { name, version, description } = server;
    if (typeof name !== "string" || typeof version !== "string") return [];
    return [{ name, version, description: typeof description === "string" ? description : "" }];
  });
}

/** One server of a registry, ready to be started or reached. */
export interface FoundServer extends ListedServer {
  readonly isDeprecated: boolean;
  readonly launch: RegistryLaunch;
  /** What it wants and was not given. */
  readonly missing: readonly Needed[];
}

/**
 * A server by its name and version, with the values that a person gave it. Rejects with an error that says what is wrong with the entry:
 * what it names is run as the user, so anything that is not as it must be is refused.
 */
export async function findServer(
  base: string,
  { name, version = "latest" }: { readonly name: string; readonly version?: string | undefined },
  values: ReadonlyMap<string, string>,
  signal: AbortSignal,
): Promise<FoundServer> {
  const url = toUrl(base, `servers/${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}`);
  const answer = await ask(url, signal, `${name}${version === "latest" ? "" : ` in version ${version}`}`);
  const { server } = answer;
  if (!isObject(server)) throw new Error(`${url.host} is no registry: its answer has no "server"`);
  if (server["name"] !== name || (version !== "latest" && server["version"] !== version))
    throw new Error(`${url.host} answered with another server than ${name}`);
  const status = statusOf(answer);
  if (status === "deleted") throw new Error(`${name} was taken out of the registry`);
  const { description } = server;
  const found = typeof server["version"] === "string" ? server["version"] : version;
  return {
    name,
    version: found,
    description: typeof description === "string" ? description : "",
    isDeprecated: status === "deprecated",
    ...launchOf(server, values),
  };
}

function toUrl(base: string, path: string): URL {
  if (!/^https?:\/\//.test(base) || !URL.canParse(base))
    throw new Error(`${JSON.stringify(base)} is not the address of a registry: write ${officialRegistry}`);
  return new URL(`v0.1/${path}`, base.endsWith("/") ? base : `${base}/`);
}

async function ask(
  url: URL,
  signal: AbortSignal,
  what?: string,
): Promise<{ readonly [member: string]: unknown }> {
  const fetch = await createApiFetch({ named: [url.host], maxBytes, timeoutMs });
  const { status, body } = await fetch(
    url,
    { method: "GET", headers: { accept: "application/json" }, signal },
    {},
  );
  if (status === 404 && what !== undefined) throw new Error(`${url.host} has no server ${what}`);
  if (status !== 200) throw new Error(`${url.host} answered with status ${status}`);
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body));
    if (isObject(value)) return value;
  } catch {
    // Reported below.
  }
  throw new Error(`${url.host} is no registry: it did not answer with JSON`);
}

function statusOf(answer: unknown): unknown {
  const meta = isObject(answer) ? answer["_meta"] : undefined;
  const official = isObject(meta) ? meta["io.modelcontextprotocol.registry/official"] : undefined;
  return isObject(official) ? official["status"] : undefined;
}
