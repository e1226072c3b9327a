/** A name that was made up may be as long as a request; no more of it than this is recorded. */
const maxLength = 256;

/** A text that others chose, as it is recorded or logged: its first 256 characters, and no half of a surrogate pair. */
export function bounded(text: string): string {
  return text.length <= maxLength ? text : text.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, "");
}

/** The `traceparent` of a call as it is recorded; undefined for what is no text. */
export function toTrace(traceparent: unknown): string | undefined {
  return typeof traceparent === "string" ? bounded(traceparent) : undefined;
}
