import { RpcError } from "../../errors/rpc-error.ts";
import { isAtLeast, type LegacyRevision } from "../revision.ts";
import type { Ask, ClientCapabilities } from "../types.ts";

/** What 2025-11-25 calls a request that cannot be served before the user has visited pages. Gone from 2026-07-28. */
export const urlElicitationRequired = -32042;

/** The capabilities a client must have declared to be asked this. */
export function capabilitiesFor(ask: Ask): ClientCapabilities {
  switch (ask.method) {
    case "elicitation/create":
      return ask.params["mode"] === "url" ? { elicitation: { url: {} } } : { elicitation: { form: {} } };
    case "sampling/createMessage": {
      return { sampling: usesTools(ask.params) ? { tools: {} } : {} };
    }
    case "roots/list":
      return { roots: {} };
  }
}

/** Lists of content came with the use of tools, and are for those who know it. */
function usesTools({ tools, toolChoice, messages }: Fields): boolean {
  if (tools !== undefined || toolChoice !== undefined) return true;
  return contentsOf(messages).some(
    (content) =>
      Array.isArray(content) || typeOf(content) === "tool_use" || typeOf(content) === "tool_result",
  );
}

function contentsOf(messages: unknown): readonly unknown[] {
  return Array.isArray(messages) ? messages.map((message) => (message as Fields | null)?.["content"]) : [];
}

function typeOf(content: unknown): unknown {
  return (content as Fields | null | undefined)?.["type"];
}

/** What of `capabilitiesFor(ask)` a client lacks; undefined when it can be asked. A bare `elicitation: {}` means forms. */
export function lacking(ask: Ask, declared: ClientCapabilities): ClientCapabilities | undefined {
  const canDo = canAnswer(ask, declared);
  return canDo ? undefined : capabilitiesFor(ask);
}

function canAnswer(ask: Ask, { elicitation, sampling, roots }: ClientCapabilities): boolean {
  switch (ask.method) {
    case "elicitation/create": {
      if (!isDeclared(elicitation)) return false;
      if (ask.params["mode"] === "url") return elicitation.url !== undefined;
      return elicitation.form !== undefined || elicitation.url === undefined;
    }
    case "sampling/createMessage":
      return (
        isDeclared(sampling) &&
        (capabilitiesFor(ask).sampling?.tools === undefined || sampling.tools !== undefined)
      );
    case "roots/list":
      return isDeclared(roots);
  }
}

/**
 * What a server is answered that asks for what its client has not declared, or what the client's revision cannot express:
 * `-32601` when no such question can be asked at all, `-32602` when this one cannot (2025-11-25, elicitation).
 */
export function notOffered(ask: Ask, declared: ClientCapabilities): RpcError {
  const { elicitation, sampling, roots } = declared;
  const capability = {
    "elicitation/create": elicitation,
    "sampling/createMessage": sampling,
    "roots/list": roots,
  };
  return isDeclared<object>(capability[ask.method])
    ? new RpcError("rpc.invalid_params", `The client does not offer this kind of ${ask.method}`)
    : new RpcError("rpc.method_not_found", `The client does not offer ${ask.method}`);
}

/** Clients write what they like; only an object declares a capability. */
function isDeclared<T extends object>(capability: T | undefined): capability is T {
  return typeof capability === "object" && capability !== null;
}

/**
 * A question in the form a legacy revision has for it; undefined when it has none. `elicitationId` names a visit of a
 * page, which 2025-11-25 wants and the modern form lacks.
 */
export function projectAsk(ask: Ask, revision: LegacyRevision, elicitationId: string): Ask | undefined {
  if (ask.method === "sampling/createMessage" && !isAtLeast(revision, "2025-03-26")) {
    const hasAudio = contentsOf(ask.params["messages"]).some((content) => typeOf(content) === "audio");
    return hasAudio ? undefined : ask;
  }
  if (ask.method !== "elicitation/create") return ask;
  if (!isAtLeast(revision, "2025-06-18")) return undefined;
  const { mode, ...params } = ask.params;
  if (isAtLeast(revision, "2025-11-25")) {
    return mode === "url" ? { ...ask, params: { mode, elicitationId, ...params } } : ask;
  }
  if (mode === "url") return undefined;
  const requestedSchema = projectForm(params["requestedSchema"]);
  return requestedSchema === undefined ? undefined : { ...ask, params: { ...params, requestedSchema } };
}

type Fields = { readonly [name: string]: unknown };

/** A form as 2025-06-18 knows it: single choices by `enum` and `enumNames`, no multiple choice, few defaults. */
function projectForm(schema: unknown): Fields | undefined {
  const { $schema: _, properties, ...rest } = (schema ?? {}) as Fields;
  const fields: { [name: string]: unknown } = {};
  for (const [name, field] of Object.entries((properties ?? {}) as Fields)) {
    const projected = projectField((field ?? {}) as Fields);
    if (projected === undefined) return undefined;
    fields[name] = projected;
  }
  return { ...rest, properties: fields };
}

function projectField(field: Fields): Fields | undefined {
  if (field["type"] === "array") return undefined;
  const { default: preset, oneOf, ...rest } = field;
  const kept = field["type"] === "boolean" && preset !== undefined ? { ...rest, default: preset } : rest;
  if (!Array.isArray(oneOf)) return kept;
  const choices = oneOf as readonly { readonly const: string; readonly title?: string }[];
  return {
    ...kept,
    enum: choices.map((choice) => choice.const),
    enumNames: choices.map(({ title, const: value }) => title ?? value),
  };
}
