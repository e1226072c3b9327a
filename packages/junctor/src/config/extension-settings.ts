import { type ConfigValue, refuse } from "./config-value.ts";
import type { OpenedExtension } from "./config.ts";
import { readList, readObject, readObjectOrEmpty, readText, refuseUnknownKeys } from "./value-readers.ts";

/** Prefixes of the protocol: the gateway knows these extensions, or they concern one hop only (2026-07-28, `_meta`). */
const official = /^(?:[^./]+\.)?(?:modelcontextprotocol|mcp)(?:\.[^/]*)?\//i;

/** Methods of others begin with a domain, those of the protocol do not. */
const vendor = /^[a-z0-9-]+(?:\.[a-z0-9-]+)+\/./i;
const coreTypes: readonly string[] = ["complete", "input_required", "task"];

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
  const object = readObjectOrEmpty(given, '{ "methods": ["com.example/*"] }');
  refuseUnknownKeys(object, ["methods", "resultTypes"]);
  const read = (key: string, example: string, isFit: (text: string) => boolean, problem: string): string[] =>
    object.has(key)
      ? readList(object.get(key), example, (item) => {
          const text = readText(item, example);
          return text === undefined || isFit(text) ? text : refuse(item, problem);
        }).slice()
      : [];
  return {
    methods: read(
      "methods",
      '["com.example/*"]',
      (method) => vendor.test(method) && !official.test(method),
      "cannot be opened: write a method that begins with a domain of its own, such as com.example/*",
    ),
    resultTypes: read(
      "resultTypes",
      '["com.example/chart"]',
      (type) => !coreTypes.includes(type),
      "is a type of the protocol itself: leave it out",
    ),
  };
}
