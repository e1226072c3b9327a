import type { Part } from "./config-value.ts";
import type { GatewayConfig } from "./config.ts";
import { given } from "./defined-fields.ts";
import { refuseUnknownKeys } from "./unknown-keys.ts";
import { readGroupOrEmpty, readList, readNumber, readText } from "./value-readers.ts";

const hostExample = '"127.0.0.1"';
const servedExample = '"mcp.example.com"';
const originExample = '"https://app.example.com"';

/** Where the gateway listens, and for whom. */
export function readHttpSettings(part: Part): GatewayConfig["http"] {
  const group = readGroupOrEmpty(part, '"http": { "port": 7780 }');
  refuseUnknownKeys(group, ["host", "port", "allowedHosts", "allowedOrigins", "corsOrigins"]);
  return {
    ...given({
      host: readHost(group.get("host")),
      port: readNumber(group.get("port"), { min: 0, max: 65_535, example: 7780 }),
    }),
    allowedHosts: readList(group.get("allowedHosts"), `"allowedHosts": [${servedExample}]`, readServedHost),
    allowedOrigins: readList(group.get("allowedOrigins"), `"allowedOrigins": [${originExample}]`, readOrigin),
    corsOrigins: readList(group.get("corsOrigins"), `"corsOrigins": [${originExample}]`, readOrigin),
  };
}

/** An address to bind: a name, or one of IPv4 or IPv6. */
function readHost(part: Part): string | undefined {
  const host = readText(part, hostExample);
  if (host === undefined || /^(?:[\w.-]+|[\da-f.]*:[\da-f:.]*:[\da-f:.]*(?:%\w+)?)$/i.test(host)) return host;
  part.reading.issue(part.path, `is not an address: write ${hostExample}, and the port into "port"`);
  return undefined;
}

/** A value of the `Host` header. */
function readServedHost(part: Part): string | undefined {
  const host = readText(part, servedExample);
  if (host === undefined || /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i.test(host)) return host;
  part.reading.issue(part.path, `is not a host: write ${servedExample} or "mcp.example.com:8443"`);
  return undefined;
}

/** A value of the `Origin` header, which has no path: one with a slash at its end would match nothing. */
function readOrigin(part: Part): string | undefined {
  const origin = readText(part, originExample);
  if (origin === undefined || /^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s*]+$/i.test(origin)) return origin;
  part.reading.issue(
    part.path,
    `is not an origin: write ${originExample}, with nothing after the host and port`,
  );
  return undefined;
}
