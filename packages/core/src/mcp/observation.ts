import type { RpcError } from "../errors/index.ts";
import type { RawJson } from "../json/index.ts";

/** One request, from the moment it came in until it is answered. No member throws. */
export interface Observation {
  /** The id of the call in the admin API and in logs, the same for all its rounds. */
  readonly id: string;
  /** The `traceparent` to send to the server in place of the caller's; undefined to pass the caller's on. */
  readonly traceparent: string | undefined;
  /** The request is for a thing of this server, which has its own name for it; `name` is the one that the caller used. */
  found(server: string, ownName: string, name: string): void;
  /** The request goes to the server it is for; `era` is the one that server is spoken to in. */
  sent(era: "modern" | "legacy" | undefined): SentObservation;
  /** The server asked the caller so many questions. */
  asked(questions: number): void;
  /** A legacy caller answered a question in the middle of its call. */
  answered(): void;
  /** Data to give to `resumed` of the next round. It travels inside the sealed state. */
  carried(): unknown;
  /** The request is a further round of an earlier one. */
  resumed(carried: unknown): void;
  /** How the work for the request ended, before the answer is written: with a result of this kind, or by an error. */
  outcome(kind: "complete" | "input_required" | "task", result: RawJson): void;
  failed(error: unknown): void;
  /** The request is answered. */
  ended(result: RawJson | undefined, error?: RpcError): void;
}

/** One request to a server behind the gateway. */
export interface SentObservation {
  ended(result: RawJson | undefined, error?: unknown): void;
}
