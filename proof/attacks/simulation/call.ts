import type { CallPlan } from "./virtual-process.ts";

/** How a call ended for its caller. */
export type CallEnd =
  | {
      readonly kind: "result" | "tool-error" | "error";
      readonly text: string;
      readonly delivery: string | undefined;
    }
  /** The caller let go, or its connection broke and nothing can be fetched any more. */
  | { readonly kind: "left" };

/** One call of one caller, with all that it may expect. */
export class SimulatedCall {
  readonly plan: CallPlan;
  readonly caller: string;
  readonly ends: CallEnd[] = [];
  readonly faults: string[] = [];
  /** Whether it was answered with a question, which began another round. */
  isAsked = false;
  #lastProgress = 0;

  constructor(plan: CallPlan, caller: string) {
    this.plan = plan;
    this.caller = caller;
  }

  get isOpen(): boolean {
    return this.ends.length === 0;
  }

  /** A message came to the caller on the stream of this call. */
  hear(method: string, params: { readonly [member: string]: unknown }): void {
    const { nonce } = this.plan;
    const text = params["message"] as string;
    // Which of its caller's calls a question belongs to is not always known; which caller must be.
    const isMine = method === "elicitation/create" ? callerOf(text) === this.caller : text === nonce;
    if (!isMine) this.faults.push(`${method} of ${text} came to ${nonce}`);
    if (!this.isOpen) this.faults.push(`${method} came to ${nonce} after its end`);
    if (method !== "notifications/progress") return;
    const progress = Number(params["progress"]);
    // Repeated after a resumption is as wrong as lost; a caller that left with a question misses what comes meanwhile.
    const isNext = this.isAsked ? progress > this.#lastProgress : progress === this.#lastProgress + 1;
    if (!isNext) this.faults.push(`progress ${progress} after ${this.#lastProgress} of ${nonce}`);
    this.#lastProgress = progress;
  }

  end(end: CallEnd): void {
    this.ends.push(end);
    const { nonce } = this.plan;
    if (this.ends.length > 1)
      this.faults.push(`${nonce} ended ${this.ends.length} times: ${JSON.stringify(this.ends)}`);
    if (end.kind === "result" && end.text !== nonce) this.faults.push(`${nonce} got the result ${end.text}`);
  }
}

/** The caller in a nonce. */
export function callerOf(nonce: string): string | undefined {
  return nonce.split("-")[1];
}

/** A message of the server, as a client parses it. */
export interface WireMessage {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: { readonly [member: string]: unknown };
  readonly result?: {
    readonly content?: readonly { readonly text?: string }[];
    readonly isError?: boolean;
    readonly resultType?: string;
    readonly requestState?: string;
    readonly inputRequests?: { readonly [key: string]: { readonly params: { readonly message?: string } } };
  };
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** What an answer means for its call. */
export function toEnd({ result, error }: WireMessage): CallEnd {
  if (error !== undefined) {
    const { delivery } = (error.data ?? {}) as { readonly delivery?: string };
    return { kind: "error", text: `${error.code} ${error.message}`, delivery };
  }
  const text = result?.content?.map((block) => block.text ?? "").join("") ?? JSON.stringify(result);
  return { kind: result?.isError === true ? "tool-error" : "result", text, delivery: undefined };
}
