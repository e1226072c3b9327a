import { Buffer } from "node:buffer";
import { RpcError } from "../errors/index.ts";
import type { RawJson } from "../json/index.ts";
import type { Request } from "../rpc/index.ts";
import type { Tool } from "./types.ts";

/** Finds an HTTP header by its lower-case name. */
export type HeaderLookup = (name: string) => string | undefined;

/** Which member of the params the header `Mcp-Name` mirrors, by method. A map: callers choose the method, `__proto__` too. */
export const namedBy: ReadonlyMap<string, "name" | "uri" | "taskId"> = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
  ["tasks/get", "taskId"],
  ["tasks/update", "taskId"],
  ["tasks/cancel", "taskId"],
]);

/**
 * Checks the three headers every modern HTTP request repeats. `version` is `MCP-Protocol-Version`, which the caller has
 * compared with the body. Throws `-32020` for one that is missing or says something else than the body.
 */
export function assertMirrored(request: Request, version: string | undefined, headers: HeaderLookup): void {
  if (version === undefined) throw missing("MCP-Protocol-Version");
  const method = headers("mcp-method")?.trim();
  if (method === undefined) throw missing("Mcp-Method");
  if (method !== request.method) throw mismatch("Mcp-Method", method, request.method);
  const member = namedBy.get(request.method);
  if (member === undefined) return;
  const expected = request.params?.at(member)?.value;
  if (typeof expected !== "string") return; // The method itself refuses params without it.
  const name = headers("mcp-name")?.trim();
  if (name === undefined) throw missing("Mcp-Name");
  if (decodeHeaderValue(name) !== expected) throw mismatch("Mcp-Name", name, expected);
}

function missing(header: string): RpcError {
  return new RpcError("rpc.header_mismatch", `Header mismatch: the header ${header} is missing`);
}

/** The error for a header that says something else than the body. */
export function mismatch(header: string, got: string, expected: string): RpcError {
  const text = `Header mismatch: ${header} is ${JSON.stringify(got)} but the body says ${JSON.stringify(expected)}`;
  return new RpcError("rpc.header_mismatch", text);
}

/**
 * Checks the arguments that a tool requires in `Mcp-Param-*` headers too (2026-07-28, `x-mcp-header`). Throws
 * `-32020` when one that is in the body is missing from the headers or says something else.
 */
export function assertParamHeaders(tool: Tool | undefined, args: RawJson, headers: HeaderLookup): void {
  if (tool === undefined) return;
  for (const param of mirroredParams(tool.inputSchema)) {
    const value = param.path.reduce<RawJson | undefined>((node, key) => node?.at(key), args);
    if (value === undefined || value.kind === "null") continue;
    assertParam(param, value, headers(`mcp-param-${param.header.toLowerCase()}`));
  }
}

function assertParam(param: MirroredParam, value: RawJson, header: string | undefined): void {
  const name = `Mcp-Param-${param.header}`;
  if (header === undefined)
    throw paramMismatch(`the header ${name} is missing, and the body has a value for it`);
  const decoded = decodeHeaderValue(header.trim());
  if (decoded === undefined) throw paramMismatch(`the header ${name} is not valid base64 of UTF-8`);
  if (!isSame(decoded, value)) throw paramMismatch(`the header ${name} and the body differ`);
}

function isSame(header: string, value: RawJson): boolean {
  switch (value.kind) {
    case "string":
      return header === value.value;
    case "boolean":
      return header === value.text;
    case "number":
      return /^-?[0-9]+(?:\.[0-9]+)?$/.test(header) && Number(header) === value.value;
    default:
      return true; // The schema check refuses it; there is no header form to compare with.
  }
}

function paramMismatch(what: string): RpcError {
  return new RpcError("rpc.header_mismatch", `Header mismatch: ${what}`);
}

type SchemaNode = { readonly [keyword: string]: unknown };

/** An argument that a modern HTTP client repeats in the header `Mcp-Param-{header}`. */
interface MirroredParam {
  readonly header: string;
  /** The path to it through the arguments' properties. */
  readonly path: readonly string[];
}

const keyword = "x-mcp-header";
const found = new WeakMap<object, readonly MirroredParam[]>();

/** The arguments a schema marks with `x-mcp-header`, wherever they can be reached through `properties` alone. */
export function mirroredParams(schema: SchemaNode): readonly MirroredParam[] {
  let params = found.get(schema);
  if (params === undefined) found.set(schema, (params = collect(schema, [])));
  return params;
}

function collect(schema: SchemaNode, path: readonly string[]): readonly MirroredParam[] {
  return propertiesOf(schema).flatMap(([key, property]) => {
    const own = [...path, key];
    const header = property[keyword];
    return [...(typeof header === "string" ? [{ header, path: own }] : []), ...collect(property, own)];
  });
}

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const mirrorable = new Set<unknown>(["string", "integer", "boolean"]);

/** The fault in a schema's use of `x-mcp-header`, if there is one. With one fault the whole tool is left out. */
export function mirroringFault(schema: SchemaNode): string | undefined {
  const names = new Set<string>();
  let allowed = 0;
  const visit = (node: SchemaNode): string | undefined => {
    for (const [key, property] of propertiesOf(node)) {
      if (keyword in property) {
        allowed++;
        const fault = faultOf(property, names);
        if (fault !== undefined) return `${keyword} of ${JSON.stringify(key)} ${fault}`;
      }
      const deeper = visit(property);
      if (deeper !== undefined) return deeper;
    }
    return undefined;
  };
  const fault = visit(schema);
  if (fault !== undefined) return fault;
  return count(schema, true) === allowed
    ? undefined
    : `${keyword} stands where no argument can be mirrored from`;
}

function faultOf(property: SchemaNode, names: Set<string>): string | undefined {
  const header = property[keyword];
  if (typeof header !== "string" || !token.test(header)) return "is not a header name";
  if (names.has(header.toLowerCase())) return "is used twice";
  names.add(header.toLowerCase());
  return mirrorable.has(property["type"])
    ? undefined
    : "is on a property that is not a string, integer or boolean";
}

/** How often the keyword occurs in a schema. A property may have that name; its value is a schema again. */
function count(node: unknown, isSchema: boolean): number {
  if (Array.isArray(node)) return node.reduce<number>((sum, item) => sum + count(item, isSchema), 0);
  if (!isNode(node)) return 0;
  return Object.entries(node).reduce((sum, [key, value]) => {
    if (isSchema && key === keyword) return sum + 1;
    if (isSchema && (key === "const" || key === "enum" || key === "default" || key === "examples"))
      return sum;
    const holdsNames =
      isSchema &&
      (key === "properties" || key === "$defs" || key === "definitions" || key === "patternProperties");
    return sum + count(value, !holdsNames);
  }, 0);
}

function propertiesOf(schema: SchemaNode): readonly [string, SchemaNode][] {
  const { properties } = schema;
  return isNode(properties)
    ? Object.entries(properties).filter((entry): entry is [string, SchemaNode] => isNode(entry[1]))
    : [];
}

function isNode(value: unknown): value is SchemaNode {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const prefix = "=?base64?";
const suffix = "?=";

/**
 * Writes a string as the value of a mirrored header (2026-07-28, Streamable HTTP): as it is when it is plain visible
 * ASCII, else as base64 between markers. A value that looks marked already is marked again, so reading is unambiguous.
 */
export function encodeHeaderValue(text: string): string {
  const isPlain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !isMarked(text);
  return isPlain || text === "" ? text : `${prefix}${Buffer.from(text, "utf8").toString("base64")}${suffix}`;
}

/** Reads a mirrored header's value; undefined when it is marked as base64 but is not canonical base64 of UTF-8. */
export function decodeHeaderValue(value: string): string | undefined {
  if (!isMarked(value)) return value;
  const encoded = value.slice(prefix.length, -suffix.length);
  const bytes = Buffer.from(encoded, "base64");
  if (bytes.toString("base64") !== encoded) return undefined;
  const text = bytes.toString("utf8");
  return Buffer.from(text, "utf8").equals(bytes) ? text : undefined;
}

function isMarked(value: string): boolean {
  return value.length >= prefix.length + suffix.length && value.startsWith(prefix) && value.endsWith(suffix);
}
