import { UsageError } from "../terminal/index.ts";
import type { Wanted } from "./configured.ts";
import { type CommandDeadline, type Destination, startDeadline, type ParsedTarget } from "./destination.ts";

/** Where `npm start` and `junctor serve` listen. */
const defaultUrl = "http://127.0.0.1:7780/mcp";

/**
 * Finds out which server is meant: by its URL or its name in the config, if one was given, or by the tool that is wanted of
 * a config. The time for the command runs from here.
 */
export async function parseDestination(parsed: ParsedTarget, wanted: Wanted): Promise<Destination> {
  if (parsed.flags.config === undefined) return parseTarget(parsed, wanted.server);
  if (parsed.command !== undefined) throw new UsageError("name the servers once: with --config or after --");
  const stray = (["header", "env"] as const).find((flag) => parsed.flags[flag].length > 0);
  if (stray !== undefined)
    throw new UsageError(`--${stray} is not for servers of a config: write it there, or leave out --config`);
  const deadline = parseDeadline(parsed);
  return (await import("./configured.ts")).openConfigured(parsed, wanted, deadline);
}

function parseDeadline(parsed: ParsedTarget): CommandDeadline | undefined {
  const timeout = parsed.flags.timeout;
  return timeout === undefined ? undefined : startDeadline(toMs(timeout));
}

/** The same without a config. */
export function parseTarget(parsed: ParsedTarget, named: string | undefined): Destination {
  const { command } = parsed;
  if (command !== undefined && named !== undefined) {
    const [first = "COMMAND"] = command;
    throw new UsageError(`name one server: ${JSON.stringify(named)} or the command ${first}, not both`);
  }
  const headers = parseHeaders(parsed);
  const deadline = parseDeadline(parsed);
  const rest = { headers, deadline, [Symbol.asyncDispose]: async () => deadline?.[Symbol.dispose]() };
  const env = parseEnv(parsed.flags.env);
  if (command === undefined) {
    if (parsed.flags.env.length > 0)
      throw new UsageError("--env is for servers that are started here: put their command after --");
    const target = withProfilePath(parseUrl(named ?? defaultUrl), parsed.flags.profile);
    const isOAuth = /^https?:/i.test(target) && !Object.hasOwn(headers, "authorization");
    return { target, ...(isOAuth ? { login: { name: target, url: target } } : {}), ...rest };
  }
  if (parsed.flags.profile !== undefined)
    throw new UsageError("--profile is for gateways: name a config with --config, or a URL");
  const [program, ...args] = command;
  if (program === undefined)
    throw new UsageError("after -- comes the command of a server, such as -- node server.mjs");
  if (parsed.flags.header.length > 0)
    throw new UsageError("--header is for HTTP servers; a server that is started here takes --env");
  return { target: { command: program, args, env }, ...rest };
}

/** The URL of a profile: its name is the last part of the path. */
function withProfilePath(text: string, profile: string | undefined): string {
  if (profile === undefined) return text;
  const url = new URL(text);
  if (url.protocol === "tcp:")
    throw new UsageError(
      "--profile needs http:// or https://; a TCP port serves the profile it was started with",
    );
  url.pathname = `${url.pathname.replace(/\/$/, "")}/${encodeURIComponent(profile)}`;
  return url.href;
}

function parseUrl(text: string): string {
  const shown = JSON.stringify(text);
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
    if (/\.json$/i.test(text) || text.startsWith("."))
      throw new UsageError(`${shown} is not a URL; a config is named by --config ${text}`);
    const isHost = /^(localhost|[\w-]+(\.[\w-]+)+|\[[\d:a-f]+\])(:\d+)?(\/|$)/i.test(text);
    throw new UsageError(
      isHost
        ? `${shown} is not a URL; did you mean http://${text}?`
        : `${shown} is not a URL; write one such as ${defaultUrl}, the command of a server after --, or --config FILE to mean a server of that config`,
    );
  }
  if (!URL.canParse(text)) throw new UsageError(`${shown} is not a valid URL`);
  const url = new URL(text);
  if (!["http:", "https:", "tcp:"].includes(url.protocol))
    throw new UsageError(`${url.protocol}// is not spoken here; use http://, https:// or tcp://HOST:PORT`);
  if (url.protocol === "tcp:" && url.port === "")
    throw new UsageError(`${shown} needs a port: tcp://${url.hostname}:PORT`);
  if (url.username !== "" || url.password !== "")
    throw new UsageError(`a name or password in the URL is not sent; use --header "Authorization: …"`);
  return text;
}

function parseHeaders(parsed: ParsedTarget): { readonly [name: string]: string } {
  return Object.fromEntries(
    parsed.flags.header.map((text) => {
      const [, name = "", value = ""] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*)$/s.exec(text) ?? [];
      // The value may be a key, so it is not repeated.
      if (name === "" || /[\r\n\0]/.test(value))
        throw new UsageError(
          `--header needs a name, a colon and a value, such as --header "Authorization: Bearer KEY"`,
        );
      return [name.toLowerCase(), value];
    }),
  );
}

function parseEnv(texts: readonly string[]): { readonly [name: string]: string } {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf("=");
      const name = at === -1 ? text : text.slice(0, at);
      const value = at === -1 ? process.env[name] : text.slice(at + 1);
      if (name === "")
        throw new UsageError("--env needs a name: --env NAME=VALUE, or --env NAME to pass ours on");
      if (value === undefined)
        throw new UsageError(`--env ${name}: there is no such variable here; write --env ${name}=VALUE`);
      return [name, value];
    }),
  );
}

/** A time such as `30`, `500ms` or `5m`. */
export function toMs(text: string): number {
  const [, number, unit = "s"] = /^(\d+(?:\.\d+)?)(ms|s|m)?$/.exec(text) ?? [];
  const ms = Math.ceil(Number(number) * (unit === "ms" ? 1 : unit === "s" ? 1000 : 60_000));
  if (ms >= 1 && ms < 2 ** 31) return ms;
  throw new UsageError(`--timeout needs a time such as 30, 500ms or 5m, not ${JSON.stringify(text)}`);
}
