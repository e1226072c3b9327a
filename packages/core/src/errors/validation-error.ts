import type { Delivery } from "./delivery.ts";

/** Arguments do not fit a tool's schema, or its structured output does not. */
export class ValidationError extends Error {
  override readonly name = "ValidationError";
  readonly code = "client.validation";
  readonly tool: string;
  readonly subject: "arguments" | "output";
  /** Where and how, as JSON pointers with what was expected. */
  readonly issues: readonly { readonly path: string; readonly message: string }[];
  /** Wrong arguments are never sent; wrong output is an answer. */
  readonly delivery: Delivery;

  constructor(
    tool: string,
    subject: "arguments" | "output",
    issues: ValidationError["issues"],
    description: string,
  ) {
    super(`${tool}: ${description}`);
    this.tool = tool;
    this.subject = subject;
    this.issues = issues;
    this.delivery = subject === "arguments" ? "not_sent" : "answered";
  }
}
