/** Which of the two kinds of answer a client takes. */
export interface Accepted {
  readonly json: boolean;
  readonly sse: boolean;
}

const both: Accepted = { json: true, sse: true };

/** Reads an `Accept` header. Without one, a client takes anything. */
export function parseAccept(header: string | undefined): Accepted {
  if (header === undefined || header === "application/json, text/event-stream") return both;
  const wanted = new Map<string, boolean>();
  for (const range of header.split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const isWanted = !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
    wanted.set(type, isWanted || wanted.get(type) === true);
  }
  const takes = (...ranges: readonly string[]): boolean => {
    // The range that says most about a type decides (RFC 9110, 12.5.1): a refusal by name beats a wildcard.
    const named = ranges.find((range) => wanted.has(range));
    return named !== undefined && wanted.get(named) === true;
  };
  return {
    json: takes("application/json", "application/*", "*/*"),
    sse: takes("text/event-stream", "text/*", "*/*"),
  };
}

/** Whether a body is JSON by its `Content-Type`: the media type itself, not a substring of something else. */
export function isJson(contentType: string | undefined): boolean {
  if (contentType === "application/json") return true;
  return contentType?.split(";", 1)[0]?.trim().toLowerCase() === "application/json";
}
