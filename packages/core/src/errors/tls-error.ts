/** A listener cannot use the certificate, the key or the authority of `tls`. */
export class TlsError extends Error {
  override readonly name = "TlsError";
  readonly code = "listen.tls";

  constructor(cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(
      `The files of "tls" cannot be used: ${reason}. Each must be PEM, and the key that of the certificate.`,
      {
        cause,
      },
    );
  }
}
