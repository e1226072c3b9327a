import type { Message } from "../../support/raw-http.ts";

export const kinds = ["plain", "streaming", "parked", "interactive"] as const;
/** What a call is: parked ones ask a modern caller, interactive ones a legacy caller. */
export type CallKind = (typeof kinds)[number];

/** How a call ended for its caller. */
export type CallEnd =
  | { readonly kind: "result"; readonly text: string }
  | { readonly kind: "error"; readonly delivery: string; readonly message: string }
  /** The connection broke, or the balancer had no replica to give the request to. The caller knows nothing more. */
  | { readonly kind: "broken"; readonly why: string }
  /** Something that must not happen. */
  | { readonly kind: "wrong"; readonly what: string };

export interface CallRecord {
  readonly kind: CallKind;
  readonly era: "modern" | "legacy";
  readonly nonce: string;
  readonly tool: string;
  readonly end: CallEnd;
  /** When it was made, in milliseconds since the run began. */
  readonly atMs: number;
  readonly tookMs: number;
}

/** A question that its caller was asked in the middle of another call. */
export interface StrayQuestion {
  /** The call in which it was asked. */
  readonly nonce: string;
  /** The call that it is about. */
  readonly about: string;
}

/** The answer of the user to the question about a nonce. */
export const answerTo = (nonce: string): string => `answer-${nonce}`;

export const wrong = (what: string): CallEnd => ({ kind: "wrong", what });

/** Reads the one response of a call. */
export function toEnd({ kind, nonce }: Pick<CallRecord, "kind" | "nonce">, response: Message): CallEnd {
  const { result, error } = response;
  if (error !== undefined) {
    const { delivery } = (error.data ?? {}) as { readonly delivery?: string };
    if (/ (?:was silent for|was not done after|and none ended within) /.test(error.message))
      return wrong(`ended by the limit alone: ${error.message}`);
    if (delivery === "not_sent" || delivery === "outcome_unknown")
      return { kind: "error", delivery, message: error.message };
    return wrong(`an error without delivery: ${JSON.stringify(error)}`);
  }
  const { content = [], isError } = result as {
    readonly content?: readonly { readonly text?: string }[];
    readonly isError?: boolean;
  };
  const text = content.map((block) => block.text ?? "").join("");
  if (isError === true) return wrong(`an error of the tool: ${text}`);
  const isAsked = kind === "parked" || kind === "interactive";
  // A question that may belong to a call that was given up is refused, and one that stays unanswered while others wait is closed. The tool
  // says so.
  const ends = [answerTo(nonce), "refused", "cancel"];
  const expected = isAsked ? ends.map((end) => `${nonce} ${end}`) : [nonce];
  return expected.includes(text) ? { kind: "result", text } : wrong(`the result of another call: ${text}`);
}

/** Checks what came before the end: it must be about this call. */
export function strayOf(nonce: string, { method, params }: Message): string | undefined {
  const text = (params?.["message"] as string | undefined) ?? nonce;
  return text.split(" ")[0] === nonce ? undefined : `${method} of another call: ${text}`;
}
