/** The codes of the admin API, and their HTTP statuses. */
const statuses = {
  "admin.bad_request": 400,
  "admin.no_key": 401,
  "admin.forbidden": 403,
  "admin.not_found": 404,
  "admin.bad_method": 405,
  "admin.conflict": 409,
  "admin.too_large": 413,
  "admin.not_json": 415,
  "admin.too_many": 429,
} as const;

type AdminErrorCode = keyof typeof statuses;

/** A request to the admin API that is refused. The message says what to do. */
export class AdminError extends Error {
  override readonly name = "AdminError";
  readonly code: AdminErrorCode;

  constructor(code: AdminErrorCode, message: string) {
    super(message);
    this.code = code;
  }

  get status(): number {
    return statuses[this.code];
  }

  get body(): object {
    return { error: { code: this.code, message: this.message } };
  }
}
