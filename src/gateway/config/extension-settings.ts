import { type ConfigValue, refuse } from "./config-value.ts";
import type { OpenedExtension } from "./config.ts";
import { readObject, readObjectOrEmpty, refuseUnknownKeys } from "./value-readers.ts";

/** Prefixes of the protocol: the gateway knows these extensions, or they concern one hop only (2026-07-28, `_meta`). */
const official = /^(?:[^./]+\.)?(?:modelcontextprotocol|mcp)(?:\.[^/]*)?\//i;

const example = '"extensions": { "com.example/maps": {} }';
const maxIdLength = 256;

/** The extensions that pass between callers and one server, though the gateway does not know them. */
export function readExtensions(given: ConfigValue): { readonly [id: string]: OpenedExtension } {
  const opened = (readObject(given, example)?.entries() ?? []).flatMap(([id, at]) => {
    if (official.test(id))
      refuse(at, "is an extension of the protocol itself, which cannot be opened: leave it out");
    else if (id === "" || id.length > maxIdLength)
      refuse(at, `is no id of an extension: write 1 to ${maxIdLength} characters, such as com.example/maps`);
    else return [[id, readOpened(at)] as const];
    return [];
  });
  return Object.fromEntries(opened);
}

function readOpened(given: ConfigValue): OpenedExtension {
  refuseUnknownKeys(readObjectOrEmpty(given, "{}"), []);
  return {};
}
