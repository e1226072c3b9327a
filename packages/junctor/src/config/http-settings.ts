import { isLoopback } from "@junctor/core/channel";
import { isCardName, type ServerCard } from "@junctor/core/mcp";
import { defined } from "@junctor/core/options";
import { type ConfigValue, refuse } from "./config-value.ts";
import type { GatewayConfig } from "./config.ts";
import {
  readFitting,
  readList,
  readNumber,
  readObject,
  readObjectOrEmpty,
  readPath,
  readText,
  refuseUnknownKeys,
} from "./value-readers.ts";

const publicExample = '"https://mcp.example.com/mcp"';
const hostExample = '"127.0.0.1"';
export const servedExample = '"mcp.example.com"';
const originExample = '"https://app.example.com"';

/** Where the gateway listens, and for whom. */
export function readHttpSettings(given: ConfigValue): GatewayConfig["http"] {
  const object = readObjectOrEmpty(given, '"http": { "port": 7780 }');
  refuseUnknownKeys(object, [
    "host",
    "port",
    "allowedHosts",
    "allowedOrigins",
    "corsOrigins",
    "publicUrl",
    "tls",
    "serverCard",
  ]);
  const publicUrl = readPublicUrl(object.get("publicUrl"));
  const serverCard = readServerCard(object.get("serverCard"));
  if (serverCard !== undefined && publicUrl === undefined)
    refuse(object.get("serverCard"), `needs "publicUrl" beside it: a card says where the endpoint is`);
  return defined({
    host: readHost(object.get("host")),
    port: readNumber(object.get("port"), { min: 0, max: 65_535, example: 7780 }),
    allowedHosts: readList(object.get("allowedHosts"), `"allowedHosts": [${servedExample}]`, readServedHost),
    allowedOrigins: readList(
      object.get("allowedOrigins"),
      `"allowedOrigins": [${originExample}]`,
      readOrigin,
    ),
    corsOrigins: readList(object.get("corsOrigins"), `"corsOrigins": [${originExample}]`, readOrigin),
    publicUrl,
    serverCard,
    tls: readTls(object.get("tls")),
  });
}

function readTls(given: ConfigValue): GatewayConfig["http"]["tls"] {
  const example = '{ "cert": "server.pem", "key": "server.key" }';
  const object = readObject(given, `"tls": ${example}`);
  if (object === undefined) return undefined;
  const isAllKnown = refuseUnknownKeys(object, ["cert", "key", "clientCa"]);
  const [cert, key] = [readPath(object.get("cert")), readPath(object.get("key"))];
  const clientCa = readPath(object.get("clientCa"));
  if (isAllKnown && (!object.has("cert") || !object.has("key")))
    return refuse(given, `needs a certificate and its key: write ${example}`);
  return cert === undefined || key === undefined ? undefined : { cert, key, ...defined({ clientCa }) };
}

const cardExample = '{ "name": "com.example/gateway", "description": "Tools of Example" }';

/** What the gateway says of itself to everyone (SEP-2127, a draft). */
function readServerCard(given: ConfigValue): ServerCard | undefined {
  const object = readObject(given, `"serverCard": ${cardExample}`);
  if (object === undefined) return undefined;
  refuseUnknownKeys(object, ["name", "title", "description", "version"]);
  const name = readText(object.get("name"), '"com.example/gateway"') ?? "";
  if (!isCardName(name)) refuse(object.get("name"), 'is not the name of a card: write "com.example/gateway"');
  const description = readText(object.get("description"), '"Tools of Example"');
  if (description === undefined) refuse(given, `needs a description: write ${cardExample}`);
  const title = readText(object.get("title"), '"Example"');
  const version = readText(object.get("version"), '"1.0.0"');
  return defined({ name, title, description: description ?? "", version });
}

/** An address to bind: a name, or one of IPv4 or IPv6. */
export function readHost(given: ConfigValue): string | undefined {
  const address = /^(?:[\w.-]+|[\da-f.]*:[\da-f:.]*:[\da-f:.]*(?:%\w+)?)$/i;
  const problem = `is not an address: write ${hostExample}, and the port into "port"`;
  return readFitting(given, hostExample, address, problem);
}

/** A value of the `Host` header. */
export function readServedHost(given: ConfigValue): string | undefined {
  const problem = `is not a host: write ${servedExample} or "mcp.example.com:8443"`;
  return readFitting(given, servedExample, /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i, problem);
}

/** The URL of the endpoint as clients know it. Tokens are sent to it, so it is encrypted unless it is on this machine. */
function readPublicUrl(given: ConfigValue): string | undefined {
  const text = readText(given, publicExample);
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.username === "" && url.password === "" && url.search === "" && url.hash === "";
  if (!isPlain || (url.protocol !== "https:" && url.protocol !== "http:"))
    return refuse(
      given,
      `is not the URL of the endpoint: write ${publicExample}, with nothing after the path`,
    );
  if (url.protocol === "http:" && !isLoopback(url.hostname.replaceAll(/[[\]]/g, "")))
    return refuse(given, `must begin with https: callers send their keys to it; write ${publicExample}`);
  return url.pathname === "/" ? url.origin : url.href;
}

/** A value of the `Origin` header, which has no path: one with a slash at its end would match nothing. */
function readOrigin(given: ConfigValue): string | undefined {
  const problem = `is not an origin: write ${originExample}, with nothing after the host and port`;
  return readFitting(given, originExample, /^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s*]+$/i, problem);
}
