/** Every way a JSON text can be refused. Stable: callers and documents may rely on the strings. */
export type JsonErrorCode =
  | "json.syntax"
  | "json.utf8"
  | "json.bom"
  | "json.trailing"
  | "json.depth"
  | "json.duplicate_key"
  | "json.case_variant_key"
  | "json.not_an_object";

const ADVICE: { readonly [Code in JsonErrorCode]: string } = {
  "json.syntax": "Send one JSON text as RFC 8259 spells it.",
  "json.utf8": "Encode the text as UTF-8.",
  "json.bom": "Send the text without a byte order mark.",
  "json.trailing": "Send exactly one JSON value and nothing after it.",
  "json.depth": "Nest less deeply, or raise the depth limit.",
  "json.duplicate_key": "Send each key once.",
  "json.case_variant_key": "Spell the key exactly as the protocol does.",
  "json.not_an_object": "Pass a JSON object.",
};

/**
 * A JSON text that was refused: `code` says which rule it broke, `offset` at which byte.
 *
 * @example
 * try { scan(bytes, shape) } catch (error) {
 *   if (error instanceof JsonError && error.code === 'json.depth') reply(413)
 * }
 */
export class JsonError extends Error {
  override readonly name: string = "JsonError";
  readonly code: JsonErrorCode;
  /** Byte offset of the fault, from the start of the refused bytes. */
  readonly offset: number;
  /**
   * The finished scan index, when the text is well-formed JSON and only its keys were refused. It lets
   * a reply carry the request's `id`. A key that occurred twice is absent from it: no occurrence of an
   * ambiguous key can be believed.
   */
  readonly index: readonly number[] | undefined;

  /** `problem` says what was wrong and with which value, without a full stop. */
  constructor(code: JsonErrorCode, offset: number, problem: string, index?: readonly number[]) {
    super(`${problem} (byte ${offset}). ${ADVICE[code]}`);
    this.code = code;
    this.offset = offset;
    this.index = index;
  }
}
