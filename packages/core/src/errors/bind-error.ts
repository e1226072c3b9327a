/** A listener was told to bind an address that others can reach, without a way to know who they are. */
export class BindError extends Error {
  override readonly name = "BindError";
  readonly code = "listen.not_loopback";
  readonly host: string;

  constructor(host: string, why: string) {
    super(`Refusing to listen on ${host}: others can reach that address, and ${why}. Use 127.0.0.1 or ::1.`);
    this.host = host;
  }
}
