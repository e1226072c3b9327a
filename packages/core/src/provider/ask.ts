import type { RawJson } from "../json/index.ts";
import {
  type Questions,
  type Elicited,
  isAskMethod,
  type Root,
  type Sampled,
  type Question,
} from "../mcp/index.ts";
import type { InputRequired, Round } from "./provider.ts";

/**
 * Ends a round: the caller is asked, and the handler runs again from its start with the answers. Everything the next
 * round must know goes into `state`, which the caller can neither read nor alter.
 *
 * @throws TypeError for questions that are not made by `elicit`, `elicitUrl`, `sample` or `listRoots`
 */
export function inputRequired(asks: Questions, state?: unknown): InputRequired {
  const usage = 'write inputRequired({ name: elicit("What is your name?", { name: { type: "string" } }) })';
  if (!isRecord(asks) || isAskMethod(asks["method"]))
    throw new TypeError(`inputRequired: questions are an object of them by name; ${usage}`);
  for (const [key, ask] of Object.entries(asks))
    if (!isAskMethod((ask as Partial<Question> | undefined)?.method))
      throw new TypeError(`inputRequired: ${JSON.stringify(key)} is not a question; ${usage}`);
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
export function readAnswers({ answers }: Round): AnswerReader {
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
