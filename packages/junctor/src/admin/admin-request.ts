import type { IncomingMessage, ServerResponse } from "node:http";
import { JsonError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import { nearest } from "@junctor/core/options";
import { readNodeBody, isJson } from "@junctor/server/internal";
import { AdminError } from "./admin-error.ts";

/** A request to the admin API that was let in. */
export interface AdminRequest {
  /** The parts of the path that its route names. */
  readonly at: { readonly [name: string]: string };
  readonly query: URLSearchParams;
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
}

const maxBodyBytes = 1024 * 1024;

/** The members of a JSON body; those that are not known are refused. An empty body has none. */
export async function readBody(
  { incoming }: AdminRequest,
  known: readonly string[],
  maxBytes: number = maxBodyBytes,
): Promise<RawJson> {
  // An HTML form cannot send this type, so a page of another site cannot send a body without being asked about it first.
  if (!isJson(incoming.headers["content-type"]))
    throw new AdminError("admin.not_json", "Send a JSON body with content-type: application/json");
  const body = await new Promise<Uint8Array | "too_large" | "aborted">((resolve) =>
    readNodeBody(incoming, maxBytes, resolve),
  );
  if (body === "too_large")
    throw new AdminError("admin.too_large", `The body is larger than ${maxBytes} bytes`);
  if (body === "aborted") throw new AdminError("admin.bad_request", "The body did not arrive");
  const json = body.length === 0 ? RawJson.fromText("{}") : parse(body);
  if (json.kind !== "object") throw new AdminError("admin.bad_request", "The body must be a JSON object");
  const unknown = Object.keys(json.value as object).find((key) => !known.includes(key));
  if (unknown !== undefined) throw unknownMember(unknown, known);
  return json;
}

function parse(body: Uint8Array): RawJson {
  try {
    return RawJson.parse(body, { maxDepth: 64 });
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new AdminError("admin.bad_request", `The body is no JSON: ${error.message}`);
  }
}

function unknownMember(key: string, known: readonly string[]): AdminError {
  const near = nearest(key, known);
  const list = known.length === 0 ? "it takes none" : `it takes ${known.join(", ")}`;
  const hint = near === undefined ? list : `did you mean ${near}?`;
  return new AdminError(
    "admin.bad_request",
    `The body has the unknown member ${JSON.stringify(key)}; ${hint}`,
  );
}

/** A member that must be a string, or may be missing. */
export function optionalText(body: RawJson, key: string): string | undefined {
  const value = body.at(key)?.value;
  if (value === undefined || value === null || typeof value === "string") return value ?? undefined;
  throw new AdminError("admin.bad_request", `${key} must be a string`);
}

/** A number in the query, within limits; the default without one. */
export function numberOf(query: URLSearchParams, key: string, usual: number, max: number): number {
  const text = query.get(key);
  if (text === null) return usual;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value <= max) return value;
  throw new AdminError("admin.bad_request", `${key} must be a whole number from 0 to ${max}`);
}

/** One of several words in the query; the first without one. */
export function choiceOf<Choice extends string>(
  query: URLSearchParams,
  key: string,
  choices: readonly [Choice, ...Choice[]],
): Choice {
  const text = query.get(key);
  const choice = choices.find((each) => each === text);
  if (text === null) return choices[0];
  if (choice !== undefined) return choice;
  throw new AdminError("admin.bad_request", `${key} must be one of ${choices.join(", ")}`);
}
