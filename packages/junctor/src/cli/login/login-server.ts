import { suggest } from "@junctor/core/options";
import { mayWantOAuth, type OAuthConfig } from "../../config/index.ts";
import { findConfigFile, usualFiles } from "../config/index.ts";
import { type Parsed, type SharedValues, UsageError } from "../terminal/index.ts";

/** A server that a person may sign in to. */
export interface LoginServer {
  /** As the person named it. */
  readonly name: string;
  readonly url: URL;
  readonly oauth?: OAuthConfig;
}

/** Finds the server that a command line names: by its URL, or by its name in a config. Throws a `UsageError`. */
export async function findLoginServer(
  command: string,
  parsed: Parsed<SharedValues<"config">>,
): Promise<LoginServer> {
  const [name, stray] = parsed.operands;
  if (name === undefined || stray !== undefined)
    throw new UsageError(`${command} takes one server: its URL, or its name in the config`);
  if (/^https?:\/\//i.test(name)) {
    if (!URL.canParse(name)) throw new UsageError(`${JSON.stringify(name)} is not a valid URL`);
    const { origin, pathname } = new URL(name);
    return { name: `${origin}${pathname}`, url: new URL(name) };
  }
  const found = await findConfigFile(parsed);
  if (found === undefined) {
    const where = `--config FILE (there is no ${usualFiles.join(", ")} here)`;
    throw new UsageError(`${JSON.stringify(name)} is not a URL: write one, or name a config: ${where}`);
  }
  const { file, config } = found;
  const server = config.servers.find((each) => each.name === name);
  if (server === undefined) {
    const names = config.servers.map((each) => each.name);
    const hint = suggest(name, names, `it has ${names.join(", ") || "none"}`);
    throw new UsageError(`${file} has no server ${JSON.stringify(name)}; ${hint}`);
  }
  const { launch, oauth } = server;
  if (launch.kind !== "http")
    throw new UsageError(`${name} is a command on this machine: there is nothing to sign in to`);
  if (!mayWantOAuth(launch))
    throw new UsageError(`${name} has an Authorization header in ${file}: remove it to sign in instead`);
  return { name, url: new URL(launch.url), ...(oauth === undefined ? {} : { oauth }) };
}
