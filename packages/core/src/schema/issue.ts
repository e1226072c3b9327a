/** One way in which a value does not fit its schema. */
export interface Issue {
  /** Where in the value, as a JSON pointer; `""` is the root. */
  readonly path: string;
  /** The expected value, and the value that came. */
  readonly message: string;
}

/** How many issues are ever reported for one value: enough for a model to fix all it did wrong in one go. */
export const maxIssues = 8;

const maxMessageLength = 300;
const maxValueLength = 60;

/**
 * All issues as one sentence a model can act on.
 *
 * @example
 * describeIssues([{ path: "/city", message: "must be string (got number 3)" }]);
 * // "Invalid arguments: /city must be string (got number 3)"
 */
export function describeIssues(issues: readonly Issue[], subject = "Invalid arguments"): string {
  const shown = issues.slice(0, maxIssues).map(({ path, message }) => {
    return `${clip(path === "" ? "/" : path, maxMessageLength)} ${clip(message, maxMessageLength)}`;
  });
  const left = issues.length - shown.length;
  if (left > 0) shown.push(`and ${left} more`);
  return shown.length === 0 ? subject : `${subject}: ${shown.join("; ")}`;
}

/** The JSON pointer (RFC 6901) through the given keys. */
export function toPointer(keys: readonly PropertyKey[]): string {
  return keys.map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** A value in few words: its type, and as much of itself as fits. Reads no more of a large value than it shows. */
export function describeValue(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return `array of ${value.length}`;
  switch (typeof value) {
    case "string":
      return `string ${JSON.stringify(clip(value, maxValueLength))}`;
    case "number":
    case "boolean":
    case "bigint":
      return `${typeof value} ${value}`;
    default:
      return typeof value;
  }
}

/** The text, cut at `maxLength` with an ellipsis. */
export function clip(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`;
}
