/** Which of the two kinds of answer a client takes. */
export interface Accepted {
  readonly json: boolean;
  readonly sse: boolean;
}

const both: Accepted = { json: true, sse: true };

/** Reads an `Accept` header. Without one, a client takes anything. */
export function parseAccept(header: string | undefined): Accepted {
  if (header === undefined || header === "application/json, text/event-stream") return both;
  let json = false;
  let sse = false;
  for (const range of header.split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    if (parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))) continue;
    json ||= type === "application/json" || type === "application/*" || type === "*/*";
    sse ||= type === "text/event-stream" || type === "text/*" || type === "*/*";
  }
  return { json, sse };
}

/** Whether a body is JSON by its `Content-Type`: the media type itself, not a substring of something else. */
export function isJson(contentType: string | undefined): boolean {
  if (contentType === "application/json") return true;
  return contentType?.split(";", 1)[0]?.trim().toLowerCase() === "application/json";
}
