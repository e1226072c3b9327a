import { isJsonObject, type JsonObject } from "@junctor/core/json";
import { allSecrets, createHide, hideInData } from "../log/index.ts";
import type { GatewayConfig } from "./config.ts";
import { entryRows } from "./entry-rows.ts";
import type { ConfigSource } from "./expand.ts";
import { createFindings, type Findings } from "./findings.ts";
import { gatewayRows } from "./gateway-rows.ts";
import { parseJsonc } from "./jsonc.ts";
import { parseConfig } from "./parse-config.ts";
import type { Row, Rows } from "./rows.ts";
import { serverRows } from "./server-rows.ts";
import { joinPath } from "./value-readers.ts";

/** A setting as it is understood, and where its value came from. */
export interface Setting {
  readonly path: string;
  /** Secrets are hidden in it. */
  readonly value: unknown;
  /** `file`: it is written; `defaults`: it stands in `junctor.defaults`; `default`: it is not set. */
  readonly from: "file" | "defaults" | "default";
  /** Where it is written, counted from 1. */
  readonly line?: number;
  /** The variables whose values are in it, and secrets of the keychain. */
  readonly variables?: readonly string[];
  /** It is written under a key that other clients use. */
  readonly isForeign?: true;
}

/** Every setting of a config, in the order of the reference. Throws a `ConfigError` with everything that is wrong. */
export function listSettings(text: string, source: ConfigSource): readonly Setting[] {
  const config = parseConfig(text, source);
  const findings = createFindings(source);
  const top = toFields(parseJsonc(text, findings));
  const junctor = toFields(top["junctor"]);
  const walk = createWalk(findings);
  const settings = [
    ...["mcpServers", "servers"].flatMap((section) =>
      Object.entries(toFields(top[section])).flatMap(([name, entry]) =>
        listEntry(config, name, toFields(entry), joinPath(section, name), findings),
      ),
    ),
    ...config.servers.flatMap((server) =>
      walk(serverRows, server, {
        written: toFields(toFields(junctor["servers"])[server.name]),
        path: joinPath("junctor.servers", server.name),
        defaults: { written: toFields(junctor["defaults"]), path: "junctor.defaults" },
      }),
    ),
    ...walk(gatewayRows, config, { written: junctor, path: "junctor" }),
  ];
  const hide = createHide(() => allSecrets(config));
  return settings.map((setting) => ({ ...setting, value: hideInData(setting.value, hide) }));
}

/** The keys of other clients that mean one of ours. */
const canonical: ReadonlySet<string> = new Set(
  "command args env envFile cwd url headers type disabled".split(" "),
);

function listEntry(
  { servers }: GatewayConfig,
  name: string,
  entry: JsonObject,
  path: string,
  findings: Findings,
): readonly Setting[] {
  const server = servers.find((each) => each.name === name);
  const launch: JsonObject = { ...server?.launch };
  return Object.keys(entryRows).flatMap((key): readonly Setting[] => {
    const written = entry[key];
    if (written === undefined || written === null) return [];
    const at = joinPath(path, key);
    const understood = key.toLowerCase().endsWith("url") ? launch["url"] : launch[key];
    const isForeign = canonical.has(key) ? {} : ({ isForeign: true } as const);
    return [
      {
        path: at,
        value: understood ?? written,
        from: "file",
        ...toOrigin(at, written, findings),
        ...isForeign,
      },
    ];
  });
}

interface Place {
  readonly written: JsonObject;
  readonly path: string;
}

function createWalk(findings: Findings) {
  const describe = (row: Row<unknown>, value: unknown, given: unknown, at: string): readonly Setting[] => {
    const { rows, each, isSecret } = row.type;
    const written = toFields(given);
    if (each !== undefined && isJsonObject(given)) {
      const named: readonly unknown[] = Array.isArray(value)
        ? value
        : Object.entries(toFields(value)).map(([name, item]) => ({ ...toFields(item), name }));
      return Object.keys(written).flatMap((name) => {
        const item = named.find((one) => toFields(one)["name"] === name);
        return walk(
          each,
          toFields(item),
          { written: toFields(written[name]), path: joinPath(at, name) },
          true,
        );
      });
    }
    if (rows !== undefined && isJsonObject(given)) return walk(rows, toFields(value), { written, path: at });
    const shown = isSecret ? "[secret]" : value;
    return [{ path: at, value: shown, from: "file", ...toOrigin(at, given, findings) }];
  };
  const walk = (
    rows: object,
    value: object,
    { written, path, defaults }: Place & { readonly defaults?: Place },
    isBrief = false,
  ): readonly Setting[] =>
    Object.entries(rows as Rows).flatMap(([key, row]): readonly Setting[] => {
      const understood = toFields(value)[key];
      const at = joinPath(path, key);
      const isSet = (place: Place | undefined): boolean =>
        place?.written[key] !== undefined && place.written[key] !== null;
      if (isSet({ written, path }))
        return describe(row, understood ?? toFields(value)["sha256"] ?? written[key], written[key], at);
      if (defaults !== undefined && isSet(defaults) && !row.isOwn) {
        const origin = toOrigin(joinPath(defaults.path, key), defaults.written[key], findings);
        return [{ path: at, value: understood, from: "defaults", ...origin }];
      }
      if (isBrief || understood === undefined) return [];
      return [{ path: at, value: understood, from: "default" }];
    });
  return walk;
}

function toOrigin(path: string, written: unknown, findings: Findings): Pick<Setting, "line" | "variables"> {
  const found = [...JSON.stringify(written).matchAll(/\$\{(?:env:)?([A-Za-z_]\w*|keychain:[^}]+)/g)];
  const named = /\.(?:keys\..*|key)\.env$/.test(path) && typeof written === "string" ? [written] : [];
  const variables = [...new Set([...found.flatMap(([, name]) => name ?? []), ...named])];
  const place = findings.placeOf(path);
  return { ...(place && { line: place.line }), ...(variables.length === 0 ? {} : { variables }) };
}

function toFields(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}
