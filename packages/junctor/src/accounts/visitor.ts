import {
  createGuardedFetch,
  type IdentityTerms,
  type PendingIdentity,
  beginIdentity,
  finishIdentity,
} from "@junctor/client/internal";
import type { Clock } from "@junctor/core/async";
import { isLoopback } from "@junctor/core/channel";
import { AuthorizationError } from "@junctor/core/errors";
import type { Authenticate } from "@junctor/server";
import { toCaller, type PageRequest } from "@junctor/server/internal";
import type { IssuerConfig } from "../config/index.ts";
import type { Logins } from "../credentials/index.ts";
import { identityPath, type Links, type Ticket } from "./links.ts";
import { toOwner } from "./owner.ts";

/** How the visitor of a link proves to be its caller: as the caller proves who it is to the gateway. */
type ProofKind = "machine" | "key" | "certificate" | "issuer";

export function proofOf({ caller, issuer }: Ticket): ProofKind {
  if (caller === undefined) return "machine";
  if (caller.startsWith("cert:")) return "certificate";
  return issuer === undefined ? "key" : "issuer";
}

interface VisitorsOptions {
  readonly links: Links;
  readonly logins: Logins;
  readonly clock: Clock;
  /** Tells callers by their keys and certificates; refuses those that were revoked. */
  readonly admit: Authenticate;
  readonly issuers: () => readonly IssuerConfig[];
}

/** Finds out whether visitors are the callers that links were made for. */
export interface Visitors {
  /** Whether the visitor of this request is the caller, where the request itself can prove that. */
  isCaller(ticket: Ticket, request: PageRequest): Promise<boolean>;
  /** Begins to ask the caller's issuer who the visitor is. */
  beginIdentity(ticket: Ticket): Promise<PendingIdentity>;
  /** Whether the issuer named the caller. Rejects with an `AuthorizationError`. */
  isNamed(ticket: Ticket, pending: PendingIdentity, callback: URL): Promise<boolean>;
}

export function createVisitors(options: VisitorsOptions): Visitors {
  const { links, logins, clock, admit, issuers } = options;
  const termsFor = ({ issuer: url }: Ticket): IdentityTerms => {
    const known = issuers().find(({ issuer }) => issuer === url);
    const { origin } = links;
    if (known === undefined || origin === undefined)
      throw new AuthorizationError("metadata", url ?? "", "it is no issuer of this gateway any more");
    const server = new URL(known.issuer);
    const redirectUrl = `${origin}${identityPath}${known.name}`;
    return {
      issuer: known.issuer,
      server,
      store: logins.store,
      clock,
      fetch: createGuardedFetch({ server, clock }),
      client: {
        ...known.login,
        ...links.document,
        redirectUrl,
        clientName: "Junctor",
        applicationType: links.isLocal ? "native" : "web",
      },
    };
  };
  return {
    isCaller: async (ticket, request) => {
      const { caller, owner } = ticket;
      const { header, form, certificate, remoteAddress } = request;
      if (caller === undefined) return links.isLocal && isOfThisMachine(request);
      const key = proofOf(ticket) === "key" ? (form.get("key")?.trim() ?? "") : undefined;
      const shown = (name: string): string | undefined =>
        name !== "authorization" ? header(name) : key === undefined ? undefined : `Bearer ${key}`;
      const found = toCaller(
        await admit(shown, { path: "/mcp", remoteAddress, ...(key === undefined ? { certificate } : {}) }),
      );
      return found !== undefined && toOwner({ caller: found.name, identity: found }) === owner;
    },
    beginIdentity: (ticket) => beginIdentity(termsFor(ticket)),
    isNamed: async (ticket, pending, callback) =>
      (await finishIdentity(pending, callback, termsFor(ticket))) === ticket.subject,
  };
}

/** A program between the visitor and us would make every visitor one of this machine. */
const signsOfProxies = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

function isOfThisMachine({ remoteAddress = "", header }: PageRequest): boolean {
  const isNear = isLoopback(remoteAddress.replace(/^::ffff:/, ""));
  return isNear && signsOfProxies.every((name) => header(name) === undefined);
}
