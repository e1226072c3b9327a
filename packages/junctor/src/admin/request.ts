import type { IncomingMessage } from "node:http";
import { BrandedError, type ErrorTable, JsonError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import { nearest } from "@junctor/core/options";
import { isJson, readNodeBody } from "@junctor/server/internal";
import type { AnyShape, ApiSchema, Shape } from "./shape.ts";

type Rows = ErrorTable["adminError"]["codes"];
type AdminErrorCode = keyof Rows;

/** The HTTP statuses of errors. The table of errors has them too, but its texts are loaded only when needed. */
const adminStatuses: { readonly [Code in AdminErrorCode]: Rows[Code]["status"] } = {
  "admin.bad_request": 400,
  "admin.no_key": 401,
  "admin.forbidden": 403,
  "admin.not_found": 404,
  "admin.bad_method": 405,
  "admin.conflict": 409,
  "admin.too_large": 413,
  "admin.not_json": 415,
  "admin.too_many": 429,
};

/** A request to the admin API that is refused. The message says what to do. */
export class AdminError extends BrandedError {
  protected static override readonly brand = "AdminError";

  override readonly name = "AdminError";
  readonly code: AdminErrorCode;

  constructor(code: AdminErrorCode, message: string) {
    super(message);
    this.code = code;
  }

  get status(): number {
    return adminStatuses[this.code];
  }
}

/** The members of a query. Throws for a member that is unknown or has another shape. */
export function readQuery<Query>(shape: Shape<Query>, query: URLSearchParams): Query {
  const members = membersOf(shape);
  assertKnown("query", [...query.keys()], members);
  const read = Object.entries(members).map(([name, schema]) => {
    const text = query.get(name);
    const isNumber = schema["type"] === "integer" && text !== null && /^\d{1,16}$/.test(text);
    return [name, text === null ? schema["default"] : isNumber ? Number(text) : text] as const;
  });
  return toChecked(shape, read);
}

/**
 * The members of a JSON body; an object stays RawJson. An empty body is an empty object. Rejects for a member that is unknown or has
 * another shape.
 */
export async function readBody<Body>(
  shape: Shape<Body>,
  incoming: IncomingMessage,
  maxBytes: number,
): Promise<Body> {
  // An HTML form cannot send this type, so a page of another site cannot send a body without a preflight.
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
  const members = membersOf(shape);
  assertKnown("body", Object.keys(json.value as object), members);
  const read = Object.keys(members).map((name) => {
    const member = json.at(name);
    const isMissing = member === undefined || member.kind === "null";
    return [name, isMissing ? undefined : member.kind === "object" ? member : member.value] as const;
  });
  return toChecked(shape, read);
}

function parse(body: Uint8Array): RawJson {
  try {
    return RawJson.parse(body, { maxDepth: 64 });
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new AdminError("admin.bad_request", `The body is not valid JSON: ${error.message}`);
  }
}

type MemberSchemas = { readonly [name: string]: ApiSchema };

function membersOf({ schema }: AnyShape): MemberSchemas {
  return schema["properties"] as MemberSchemas;
}

function assertKnown(where: "body" | "query", given: readonly string[], members: MemberSchemas): void {
  const known = Object.keys(members);
  const unknown = given.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const near = nearest(unknown, known);
  const list = known.length === 0 ? "it takes no members" : `it takes ${known.join(", ")}`;
  const hint = near === undefined ? list : `did you mean ${near}?`;
  throw new AdminError(
    "admin.bad_request",
    `The ${where} has the unknown member ${JSON.stringify(unknown)}; ${hint}`,
  );
}

/** Checks members against their schemas: the one place where untrusted input becomes a value of the type that its shape describes. */
function toChecked<T>(shape: Shape<T>, given: readonly (readonly [string, unknown])[]): T {
  const required = shape.schema["required"] as readonly string[];
  const members = membersOf(shape);
  const present = given.filter(([name, value]) => value !== undefined || required.includes(name));
  for (const [name, value] of present) {
    const fault = findFault(members[name] ?? {}, value);
    if (fault !== undefined) throw new AdminError("admin.bad_request", `${name} must be ${fault}`);
  }
  return Object.fromEntries(present) as T;
}

/** What a value should be; undefined when it is valid. */
function findFault(
  { type, enum: words, maximum = Number.MAX_SAFE_INTEGER }: ApiSchema,
  value: unknown,
): string | undefined {
  if (Array.isArray(words)) return words.includes(value) ? undefined : `one of ${words.join(", ")}`;
  if (type === "integer")
    return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= (maximum as number)
      ? undefined
      : `a whole number from 0 to ${maximum as number}`;
  if (type === "object") return value instanceof RawJson ? undefined : "an object";
  return typeof value === "string" ? undefined : "a string";
}
