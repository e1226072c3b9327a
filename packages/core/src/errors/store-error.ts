/** An operation on the facts that replicas share was not done, or it is not known whether it was. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly code:
    | "store.unreachable"
    | "store.refused"
    | "store.starting"
    | "store.full"
    | "store.invalid"
    | "store.client_missing";

  constructor(code: StoreError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
