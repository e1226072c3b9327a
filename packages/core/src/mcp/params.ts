import { RpcError } from "../errors/index.ts";
import { parseText, type RawJson } from "../json/index.ts";

/** A string among the params. Throws `-32602` naming it when it is missing or something else. */
export function stringParam(params: RawJson | undefined, key: string): string {
  const text = params?.textOf(key);
  if (text?.charCodeAt(0) !== 0x22)
    throw new RpcError("rpc.invalid_params", `Invalid params: ${key} must be a string`);
  return parseText(text) as string;
}

/** An object among the params, or undefined. Throws `-32602` when it is something else. */
export function objectParam(params: RawJson | undefined, key: string): RawJson | undefined {
  const member = params?.at(key);
  if (member === undefined || member.kind === "object") return member;
  throw new RpcError("rpc.invalid_params", `Invalid params: ${key} must be an object`);
}

/** Strings by name among the params, or none. Throws `-32602` when there is anything else. */
export function stringsParam(params: RawJson | undefined, key: string): { readonly [name: string]: string } {
  const value = (objectParam(params, key)?.value ?? {}) as { readonly [name: string]: unknown };
  const wrong = Object.entries(value).find(([, item]) => typeof item !== "string");
  if (wrong !== undefined)
    throw new RpcError("rpc.invalid_params", `Invalid params: ${key}.${wrong[0]} must be a string`);
  return value as { readonly [name: string]: string };
}
