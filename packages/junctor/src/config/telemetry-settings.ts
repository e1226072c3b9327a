import { resolve } from "node:path";
import { defined } from "@junctor/core/options";
import { type ConfigValue, toObject } from "./config-value.ts";
import type { AdminConfig, GatewayConfig } from "./config.ts";
import { readHeaders } from "./http-launch.ts";
import { readHost, readServedHost, servedExample } from "./http-settings.ts";
import { keyExample, readHash } from "./key-settings.ts";
import {
  readFitting,
  readList,
  readNumber,
  readObject,
  readText,
  refuseUnknownKeys,
} from "./value-readers.ts";

const adminExample = '"admin": { "port": 7781 }, or false for none';
const endpointExample = '"http://127.0.0.1:4318/v1/traces"';
const accessExample = '"access.jsonl", or "stderr", or { "file": "access.jsonl", "keep": 5 }';

/** Where the admin API listens; `false` for nowhere. */
export function readAdmin(given: ConfigValue): GatewayConfig["admin"] {
  if (given.value === false) return false;
  const object = readObject(given, adminExample);
  if (object === undefined) return undefined;
  refuseUnknownKeys(object, ["host", "port", "key", "allowedHosts"]);
  return defined({
    host: readHost(object.get("host")),
    port: readNumber(object.get("port"), { min: 0, max: 65_535, example: 7781 }),
    allowedHosts: readList(object.get("allowedHosts"), `"allowedHosts": [${servedExample}]`, readServedHost),
    sha256: object.has("key") ? readAdminKey(object.get("key")) : undefined,
  });
}

function readAdminKey(given: ConfigValue): AdminConfig["sha256"] {
  const object = readObject(given, keyExample);
  if (object === undefined || !refuseUnknownKeys(object, ["env", "sha256"])) return undefined;
  return readHash(object);
}

/** Where the access log goes; undefined for nowhere. */
export function readAccessLog(given: ConfigValue): GatewayConfig["accessLog"] {
  const object = toObject(given);
  if (object === undefined) {
    if (typeof given.value !== "string") readObject(given, accessExample);
    const text = typeof given.value === "string" ? readText(given, accessExample) : undefined;
    return text === undefined || text === "stderr" ? text : { file: toPath(given, text) };
  }
  refuseUnknownKeys(object, ["file", "maxBytes", "keep"]);
  const file = readText(object.get("file"), '"access.jsonl"');
  if (file === undefined) return undefined;
  return {
    file: toPath(given, file),
    ...defined({
      maxBytes: readNumber(object.get("maxBytes"), { min: 1024, max: 2 ** 40, example: 67_108_864 }),
      keep: readNumber(object.get("keep"), { min: 0, max: 1000, example: 5 }),
    }),
  };
}

/** Where spans go; undefined when the config says nothing of it. */
export function readTraces(given: ConfigValue): GatewayConfig["traces"] {
  const object = readObject(given, `"traces": { "endpoint": ${endpointExample} }`);
  if (object === undefined) return undefined;
  refuseUnknownKeys(object, ["endpoint", "headers", "percent", "service"]);
  const problem = `is not an http or https address: write ${endpointExample}`;
  return defined({
    endpoint: readFitting(object.get("endpoint"), endpointExample, /^https?:\/\/[^\s/]+/i, problem),
    headers: object.has("headers") ? readHeaders(object.get("headers")) : {},
    percent: readNumber(object.get("percent"), { min: 0, max: 100, example: 5 }),
    service: readText(object.get("service"), '"junctor"'),
  });
}

function toPath({ findings }: ConfigValue, file: string): string {
  return resolve(findings.source.folder ?? ".", file);
}
