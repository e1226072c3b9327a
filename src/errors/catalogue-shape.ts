import type { AbortedError } from "./aborted-error.ts";
import type { AuditError } from "./audit-error.ts";
import type { BindError } from "./bind-error.ts";
import type { ClosedError } from "./closed-error.ts";
import type { ConfigError } from "./config-error.ts";
import type { ConnectError } from "./connect-error.ts";
import type { HttpError } from "./http-error.ts";
import type { JsonError } from "./json-error.ts";
import type { NotFoundError } from "./not-found-error.ts";
import type { RpcError } from "./rpc-error.ts";
import type { SchemaError } from "./schema-error.ts";
import type { SealError } from "./seal-error.ts";
import type { SessionExpiredError } from "./session-expired-error.ts";
import type { TimeoutError } from "./timeout-error.ts";
import type { ToolError } from "./tool-error.ts";
import type { UpstreamError } from "./upstream-error.ts";
import type { UriTemplateError } from "./uri-template-error.ts";
import type { ValidationError } from "./validation-error.ts";

/** Every error there is, by its class. */
interface Errors {
  readonly AbortedError: AbortedError;
  readonly AuditError: AuditError;
  readonly BindError: BindError;
  readonly ClosedError: ClosedError;
  readonly ConfigError: ConfigError;
  readonly ConnectError: ConnectError;
  readonly HttpError: HttpError;
  readonly JsonError: JsonError;
  readonly NotFoundError: NotFoundError;
  readonly RpcError: RpcError;
  readonly SchemaError: SchemaError;
  readonly SealError: SealError;
  readonly SessionExpiredError: SessionExpiredError;
  readonly TimeoutError: TimeoutError;
  readonly ToolError: ToolError;
  readonly UpstreamError: UpstreamError;
  readonly UriTemplateError: UriTemplateError;
  readonly ValidationError: ValidationError;
}

/** What an error means, and what to do about it. */
export interface CatalogueEntry {
  readonly meaning: string;
  readonly advice: string;
}

/** An entry for each code of each class: one that is missing, or that no class has, does not compile. */
export type Catalogue = {
  readonly [Name in keyof Errors]: { readonly [Code in Errors[Name]["code"]]: CatalogueEntry };
};
