import type { RawJson } from "../json/raw.ts";
import type { Ask, Content } from "../mcp/types.ts";
import type { InputRequired, Resumption } from "./provider.ts";

/** What the user did with a form: filled it in, said no, or closed it. */
export type Elicited =
  | { readonly action: "accept"; readonly content: { readonly [field: string]: unknown } }
  | { readonly action: "decline" | "cancel" };

/** What the client's model wrote. */
export interface Sampled {
  readonly role: "assistant" | "user";
  readonly content: Content | readonly Content[];
  readonly model: string;
  readonly stopReason?: string;
}

export interface Root {
  readonly uri: string;
  readonly name?: string;
}

/**
 * Asks the user to fill in a form. The schema is an object of flat fields: strings, numbers, booleans, enums.
 *
 * @example
 * return inputRequired({ name: elicit("What is your name?", { name: { type: "string" } }, ["name"]) });
 */
export function elicit(
  message: string,
  fields: { readonly [name: string]: object },
  required: readonly string[] = [],
): Ask {
  const requestedSchema = {
    type: "object",
    properties: fields,
    ...(required.length > 0 ? { required } : {}),
  };
  return { method: "elicitation/create", params: { message, requestedSchema } };
}

/** Asks the user to visit a page. Accepting means they agreed to open it, not that they are done there. */
export function elicitUrl(message: string, url: string): Ask {
  return { method: "elicitation/create", params: { mode: "url", message, url } };
}

/** Asks the client's model to write something. */
export function sample(params: {
  readonly messages: readonly {
    readonly role: "user" | "assistant";
    readonly content: Content | readonly Content[];
  }[];
  readonly maxTokens: number;
  readonly [option: string]: unknown;
}): Ask {
  return { method: "sampling/createMessage", params };
}

/** Asks the client which folders the user is working in. */
export function listRoots(): Ask {
  return { method: "roots/list" };
}

/**
 * Ends a round: the caller is asked, and the handler runs again from its start with the answers. Everything the next
 * round must know goes into `state`, which the caller can neither read nor alter.
 */
export function inputRequired(asks: { readonly [key: string]: Ask }, state?: unknown): InputRequired {
  return state === undefined ? { kind: "input_required", asks } : { kind: "input_required", asks, state };
}

export function isInputRequired(value: unknown): value is InputRequired {
  return (
    typeof value === "object" && value !== null && (value as { kind?: unknown }).kind === "input_required"
  );
}

/** The answers a handler got so far, of all rounds. Each getter gives undefined while its question was not answered. */
export interface AnswerReader {
  /** A form's outcome. */
  elicited(key: string): Elicited | undefined;
  sampled(key: string): Sampled | undefined;
  roots(key: string): readonly Root[] | undefined;
}

/** The answers of a call that asked nothing yet. */
export const noAnswers: AnswerReader = {
  elicited: () => undefined,
  sampled: () => undefined,
  roots: () => undefined,
};

/** Reads answers. One of the wrong shape counts as not given, so the handler asks again and never trusts it. */
export function readAnswers({ answers }: Resumption): AnswerReader {
  const answer = (key: string): { readonly [field: string]: unknown } | undefined => {
    const raw: RawJson | undefined = Object.hasOwn(answers, key) ? answers[key] : undefined;
    return raw?.kind === "object" ? (raw.value as { readonly [field: string]: unknown }) : undefined;
  };
  return {
    elicited: (key) => {
      const { action, content } = answer(key) ?? {};
      if (action === "decline" || action === "cancel") return { action };
      if (action !== "accept") return undefined;
      return { action, content: isRecord(content) ? content : {} };
    },
    sampled: (key) => {
      const value = answer(key);
      const isSampled = typeof value?.["model"] === "string" && isBlocks(value["content"]);
      return isSampled ? (value as unknown as Sampled) : undefined;
    },
    roots: (key) => {
      const roots = answer(key)?.["roots"];
      return Array.isArray(roots) && roots.every(isRoot) ? roots : undefined;
    },
  };
}

/** One block or several. Their types are not checked: a model that was given tools writes blocks of its own. */
function isBlocks(value: unknown): boolean {
  return Array.isArray(value) ? value.every(isRecord) : isRecord(value);
}

function isRoot(value: unknown): value is Root {
  return isRecord(value) && typeof value["uri"] === "string";
}

function isRecord(value: unknown): value is { readonly [field: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
