/** State that cannot be sealed, or a seal that would not be safe. A token that does not open is not an error. */
export class SealError extends Error {
  override readonly name = "SealError";
  readonly code: "seal.weak_secret" | "seal.payload" | "seal.too_large";

  constructor(code: SealError["code"], message: string) {
    super(message);
    this.code = code;
  }
}
