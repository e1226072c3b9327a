/** What sort of JSON value it is. */
export type JsonKind = "object" | "array" | "string" | "number" | "boolean" | "null";

/** The kind of a JSON text, by its first byte. */
export function kindOfFirst(byte: number | undefined): JsonKind {
  switch (byte) {
    case 0x7b: // {
      return "object";
    case 0x5b: // [
      return "array";
    case 0x22: // "
      return "string";
    case 0x74: // t
    case 0x66: // f
      return "boolean";
    case 0x6e: // n
      return "null";
    default:
      return "number";
  }
}

/** The kind of a parsed value. */
export function kindOfValue(value: unknown): JsonKind {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value as JsonKind;
}
