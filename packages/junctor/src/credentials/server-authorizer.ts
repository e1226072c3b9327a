import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import type { Authorizer, OpenPage, CredentialStore } from "@junctor/client";
import {
  defaultRedirectUrl,
  createAuthorizer,
  type CredentialEvent,
  credentialId,
  createGuardedFetch,
  type LoginTerms,
} from "@junctor/client/internal";
import { type Clock, dateOf, systemClock, waitFor } from "@junctor/core/async";
import type { AuditSink } from "@junctor/core/provider";
import type { OAuthConfig } from "../config/index.ts";

/** Where the credentials of servers are, and how they are renewed. */
export interface Logins {
  readonly store: CredentialStore;
  /** Renews a stored credential in a process of its own, which outlives this one; see `createAuthorizer`. */
  readonly renewElsewhere?: ((renewal: Renewal) => Promise<void>) | undefined;
}

/** What a process needs to renew a credential. The process reads it from its standard input. */
export interface Renewal {
  readonly server: string;
  readonly id: string;
  /** The token that is to be replaced. */
  readonly token: string;
  readonly named: readonly string[];
  readonly privateKey?: string;
}

/** The owner of the credentials that all callers of a server share. */
export const sharedOwner = "shared";

interface ServerAuthorizerOptions {
  readonly server: URL;
  readonly oauth?: OAuthConfig | undefined;
  readonly owner: string;
  readonly logins: Logins;
  /** What a person does about a missing sign-in, for messages. */
  readonly advice: string;
  readonly redirectUrl?: string;
  /** The URL of the document that describes this gateway as a client. */
  readonly clientDocument?: string | undefined;
  readonly open?: OpenPage;
  readonly clock?: Clock;
  readonly onEvent?: (event: CredentialEvent) => void;
}

/** How access to a server of a config is obtained. */
export function toLoginTerms(options: ServerAuthorizerOptions): LoginTerms {
  const { server, oauth = {}, logins, redirectUrl = defaultRedirectUrl, clock = systemClock } = options;
  const { clientId, clientSecret, privateKey, issuer, scopes } = oauth;
  return {
    server,
    client: {
      clientId,
      clientSecret,
      privateKey,
      clientDocument: options.clientDocument,
      redirectUrl,
      clientName: "Junctor",
      applicationType: redirectUrl.startsWith("http://127.0.0.1") ? "native" : "web",
    },
    grant: oauth.grant ?? "authorization_code",
    issuer,
    scopes,
    sendsResource: oauth.resource !== false,
    store: logins.store,
    fetch: createGuardedFetch({ server, named: namedHosts(oauth), clock }),
    clock,
  };
}

/** The authorizer of one owner at a server of a config. */
export function createServerAuthorizer(options: ServerAuthorizerOptions): Authorizer {
  const { server, oauth = {}, owner, logins, advice, open, onEvent } = options;
  const { renewElsewhere } = logins;
  const { privateKey } = oauth;
  const rest = { named: namedHosts(oauth), ...(privateKey === undefined ? {} : { privateKey }) };
  return createAuthorizer({
    terms: toLoginTerms(options),
    id: credentialId(server, owner),
    advice,
    open,
    onEvent,
    renewElsewhere:
      renewElsewhere === undefined
        ? undefined
        : (id, token) => renewElsewhere({ server: server.href, id, token, ...rest }),
  });
}

function namedHosts({ issuer }: OAuthConfig): readonly string[] {
  return issuer === undefined ? [] : [new URL(issuer).hostname];
}

/** How long a renewal may take: a few requests of 5 seconds each, and the start of a process. */
const limitMs = 30_000;

/**
 * Renews credentials in processes of their own: `command` gets a `Renewal` as JSON on its standard input. They are not part of our process
 * group, so they end their work when this process is killed in the middle.
 */
export function renewByProcess(
  command: readonly [string, ...string[]],
  clock: Clock = systemClock,
): NonNullable<Logins["renewElsewhere"]> {
  const [program, ...args] = command;
  return async (renewal: Renewal) => {
    const child = spawn(program, args, { detached: true, stdio: ["pipe", "ignore", "ignore"] });
    const ended = new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", () => resolve());
    });
    child.stdin?.on("error", () => {}); // It ended before it read everything, which `ended` reports.
    child.stdin?.end(JSON.stringify(renewal));
    child.unref();
    await waitFor(ended, { ms: limitMs, clock });
  };
}

/** Records what became of a credential, beside the records of calls. A record that cannot be written changes nothing else. */
export function recordCredential(
  sink: AuditSink | undefined,
  server: string,
  { kind, issuer, clientId, reason, caller }: CredentialEvent,
  clock: Clock,
): void {
  if (sink === undefined) return;
  const record = {
    time: dateOf(clock.now(), clock),
    call: randomUUID(),
    trace: undefined,
    caller,
    issuer,
    clientId,
    server,
    kind: "event",
    tool: `credential.${kind}`,
    era: undefined,
    revision: undefined,
    argumentsDigest: "",
    outcome: kind === "refresh_failed" || kind === "connect_refused" ? "refused" : "ok",
    code: undefined,
    delivery: undefined,
    reason,
    bytesSent: 0,
    bytesReceived: 0,
    durationMs: 0,
  } as const;
  void Promise.resolve(sink(record)).catch(() => {}); // The records of calls report that no record can be written.
}
