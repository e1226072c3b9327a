import { RpcError } from "../errors/rpc-error.ts";
import type { RawJson } from "../json/raw.ts";
import type { HeaderLookup } from "../mcp/era.ts";
import { decodeHeaderValue } from "../mcp/header-value.ts";
import { type MirroredParam, mirroredParams } from "../mcp/mirrored-params.ts";
import type { Tool } from "../mcp/types.ts";

const found = new WeakMap<readonly Tool[], ReadonlyMap<string, Tool>>();

/** The tools that want arguments repeated, by name; few lists have any. Looked for once in a list that cannot change. */
export function mirroringTools(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  let mirroring = found.get(tools);
  if (mirroring === undefined) {
    const those = tools.filter((tool) => mirroredParams(tool.inputSchema).length > 0);
    mirroring = new Map(those.map((tool) => [tool.name, tool]));
    if (Object.isFrozen(tools)) found.set(tools, mirroring);
  }
  return mirroring;
}

/**
 * Checks the arguments a tool wants repeated in `Mcp-Param-*` headers (2026-07-28, `x-mcp-header`). Throws `-32020`
 * when one that is in the body is missing from the headers or says something else.
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
  if (header === undefined) throw mismatch(`the header ${name} is missing, and the body has a value for it`);
  const decoded = decodeHeaderValue(header.trim());
  if (decoded === undefined) throw mismatch(`the header ${name} is not valid base64 of UTF-8`);
  if (!isSame(decoded, value)) throw mismatch(`the header ${name} and the body differ`);
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

function mismatch(what: string): RpcError {
  return new RpcError("rpc.header_mismatch", `Header mismatch: ${what}`);
}
