import { BrandedError, type Delivery } from "./branded-error.ts";
import type { authorizationError, upstreamError, validationError } from "./table.ts";

/** A code without the word before its dot. */
type ReasonOf<Family extends string, Code> = Code extends `${Family}.${infer Reason}` ? Reason : never;

/** The caller gave a request up. `cause` is the reason of its signal. */
export class AbortedError extends BrandedError {
  protected static override readonly brand = "AbortedError";

  override readonly name = "AbortedError";
  readonly code = "client.aborted";
  readonly delivery: Delivery;

  constructor(delivery: Delivery, cause: unknown) {
    super("The request was given up by its caller.", { cause });
    this.delivery = delivery;
  }
}

/** Why a request could not be authorized at its server. */
type AuthorizationReason = ReasonOf<"auth", keyof typeof authorizationError.codes>;

/** What a server demands of requests: the Bearer challenge of RFC 6750, section 3. */
export interface BearerChallenge {
  readonly status: 401 | 403;
  readonly error?: string;
  /** Where the metadata of the server is. */
  readonly resourceMetadata?: string;
  readonly scopes?: readonly string[];
}

/** A request to a server was not authorized, and was not carried out. It holds no token, code or secret. */
export class AuthorizationError extends BrandedError {
  protected static override readonly brand = "AuthorizationError";

  override readonly name = "AuthorizationError";
  readonly code: `auth.${AuthorizationReason}`;
  /** The URL of the server, without its query. */
  readonly server: string;
  /** Why, without the rest of the message. */
  readonly reason: string;
  /** What the server demanded, where it did. */
  readonly challenge: BearerChallenge | undefined;
  readonly delivery: Delivery = "not_sent";

  constructor(
    reason: AuthorizationReason,
    server: string,
    text: string,
    facts: { readonly challenge?: BearerChallenge; readonly cause?: unknown } = {},
  ) {
    super(`${server}: ${text}`, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = `auth.${reason}`;
    this.server = server;
    this.reason = text;
    this.challenge = facts.challenge;
  }
}

/** The channel ended, or was closed, before a request on it was answered. */
export class ClosedError extends BrandedError {
  protected static override readonly brand = "ClosedError";

  override readonly name = "ClosedError";
  readonly code = "channel.closed";
  readonly delivery: Exclude<Delivery, "answered">;

  constructor(delivery: Exclude<Delivery, "answered">, reason: string, options?: ErrorOptions) {
    super(
      delivery === "not_sent"
        ? `The request was not sent: ${reason}.`
        : `The channel closed before the answer came: ${reason}. Whether the request was carried out is unknown.`,
      options,
    );
    this.delivery = delivery;
  }
}

/** What kept a server from being reached or started, for programs. `other`: only the message says it. */
export type ConnectKind =
  /** There is no such program. */
  | "no_program"
  /** The folder that the program is to run in does not exist. */
  | "no_folder"
  /** The program may not be run. */
  | "not_executable"
  /** The program ended before it answered. */
  | "exited"
  /** No answer came in time. */
  | "no_answer"
  | "other";

interface ConnectErrorOptions {
  readonly kind?: ConnectKind | undefined;
  readonly stderr?: string;
  readonly stray?: string;
  readonly cause?: unknown;
}

/** A server could not be reached or did not start. */
export class ConnectError extends BrandedError {
  protected static override readonly brand = "ConnectError";

  override readonly name = "ConnectError";
  readonly code = "client.connect";
  readonly kind: ConnectKind;
  readonly target: string;
  /** Why, without the rest of the message. */
  readonly reason: string;
  /** The end of what a child wrote to its standard error stream. */
  readonly stderr: string;
  /** The first line that a child wrote to its standard output and that is not a message; empty when there was none. */
  readonly stray: string;
  readonly delivery: Delivery = "not_sent";

  constructor(target: string, reason: string, options: ConnectErrorOptions = {}) {
    const { kind = "other", stderr = "", stray = "", cause } = options;
    const output = stderr.trim() === "" ? "" : `\nIt wrote:\n${stderr.trimEnd().replaceAll(/^/gm, "  ")}`;
    const strayOutput = stray === "" ? "" : `\n${strayText}:\n  ${stray}`;
    super(`Could not connect to ${target}: ${reason}${output}${strayOutput}`, { cause });
    this.kind = kind;
    this.target = target;
    this.reason = reason;
    this.stderr = stderr;
    this.stray = stray;
  }
}

const strayText = "It wrote to its standard output, where only MCP messages belong";

/** A server answered with an HTTP status that carries no MCP message. */
export class HttpError extends BrandedError {
  protected static override readonly brand = "HttpError";

  override readonly name = "HttpError";
  readonly code = "client.http";
  readonly status: number;
  readonly url: string;
  /** The beginning of the response body. */
  readonly excerpt: string;
  readonly delivery: Delivery;

  constructor(status: number, url: string, excerpt: string) {
    super(`${url} answered ${status}${advice[status] ?? ""}${excerpt === "" ? "" : `: ${excerpt}`}`);
    this.status = status;
    this.url = url;
    this.excerpt = excerpt;
    this.delivery = status >= 500 ? "outcome_unknown" : "answered";
  }
}

const advice: { readonly [status: number]: string } = {
  401: " (it wants authentication: pass headers: { authorization: … })",
  403: " (these credentials are not enough)",
  404: " (is this the URL of an MCP endpoint?)",
  405: " (is this the URL of an MCP endpoint?)",
};

/** A legacy server no longer knows our session. The request was not carried out. */
export class SessionExpiredError extends BrandedError {
  protected static override readonly brand = "SessionExpiredError";

  override readonly name = "SessionExpiredError";
  readonly code = "client.session_expired";
  readonly delivery: Delivery = "not_sent";

  constructor() {
    super("The server no longer knows this session, and a new one could not be used. Connect again.");
  }
}

/** Which clock ran out: nothing came for too long (`idle`), or the whole took too long (`total`). */
export type TimeoutKind = "idle" | "total";

/** A request took too long and was cancelled. */
export class TimeoutError extends BrandedError {
  protected static override readonly brand = "TimeoutError";

  override readonly name = "TimeoutError";
  readonly code = "client.timeout";
  readonly kind: TimeoutKind;
  readonly timeoutMs: number;
  readonly delivery: Delivery;

  constructor(kind: TimeoutKind, timeoutMs: number, delivery: Delivery = "outcome_unknown") {
    super(
      kind === "idle"
        ? `Nothing came for ${timeoutMs} ms, and the request was cancelled. Raise timeoutMs if it may take longer.`
        : `The request was not done after ${timeoutMs} ms in all and was cancelled. Raise maxTotalMs if it may take longer.`,
    );
    this.kind = kind;
    this.timeoutMs = timeoutMs;
    this.delivery = delivery;
  }
}

/** Arguments do not fit a tool's schema, or its structured output does not. */
export class ValidationError extends BrandedError {
  protected static override readonly brand = "ValidationError";

  override readonly name = "ValidationError";
  readonly code: keyof typeof validationError.codes;
  readonly tool: string;
  readonly subject: "arguments" | "output";
  /** Where and how, as JSON pointers with what was expected. */
  readonly issues: readonly { readonly path: string; readonly message: string }[];
  /** Wrong arguments are never sent; wrong output is an answer. */
  readonly delivery: Delivery;

  constructor(
    tool: string,
    subject: "arguments" | "output",
    issues: ValidationError["issues"],
    description: string,
  ) {
    super(`${tool}: ${description}`);
    this.code = `client.invalid_${subject}`;
    this.tool = tool;
    this.subject = subject;
    this.issues = issues;
    this.delivery = subject === "arguments" ? "not_sent" : "answered";
  }
}

/** Why a server behind the gateway did not answer. */
export type UpstreamReason = ReasonOf<"upstream", keyof typeof upstreamError.codes>;

interface UpstreamFacts {
  /** The name of the server. */
  readonly server: string;
  readonly delivery: Delivery;
  readonly cause?: unknown;
}

/** A server behind the gateway could not be asked, or did not answer. */
export class UpstreamError extends BrandedError {
  protected static override readonly brand = "UpstreamError";

  override readonly name = "UpstreamError";
  readonly code: `upstream.${UpstreamReason}`;
  readonly server: string;
  readonly delivery: Delivery;

  constructor(reason: UpstreamReason, text: string, { server, delivery, cause }: UpstreamFacts) {
    super(text, cause === undefined ? undefined : { cause });
    this.code = `upstream.${reason}`;
    this.server = server;
    this.delivery = delivery;
  }
}
