import { createHash, randomBytes } from "node:crypto";
import {
  beginIdentity,
  createGuardedFetch,
  finishIdentity,
  type IdentityTerms,
  type PendingIdentity,
  type PendingLogin,
} from "@junctor/client/internal";
import type { Clock } from "@junctor/core/async";
import { isLoopback } from "@junctor/core/channel";
import { AuthorizationError } from "@junctor/core/errors";
import type { Authenticate } from "@junctor/server";
import { type PageRequest, toCaller } from "@junctor/server/internal";
import type { IssuerConfig } from "../config/index.ts";
import type { Logins } from "../credentials/index.ts";
import { toOwner } from "./accounts.ts";
import { identityPath, linkMs, type Links, type Ticket } from "./links.ts";

/** Why a page is not shown, in words for the person. */
export class PageRefusal extends Error {
  override readonly name = "PageRefusal";
  readonly status: number;

  constructor(status: number, text: string) {
    super(text);
    this.status = status;
  }
}

/** A page of another site can send a form here, but cannot claim to be of this one. */
export function assertOwnForm({ header }: PageRequest, origin: string): void {
  const site = header("sec-fetch-site");
  if (header("origin") !== origin || (site !== undefined && site !== "same-origin"))
    throw new PageRefusal(403, "The form was not sent by the page of this gateway.");
}

const cookieName = "junctor-connect-";

/** The cookie of one sign-in: for this host alone, unseen by scripts, and sent along when a sign-in leads back. */
export function toCookie({ nonce }: Ticket, { origin = "" }: Links, value: string): string {
  const isSecure = origin.startsWith("https://");
  const name = `${isSecure ? "__Host-" : ""}${cookieName}${nonce.slice(0, 8)}`;
  const age = value === "" ? 0 : linkMs / 1000;
  return `${name}=${value}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
}

/** Most cookies of sign-ins that are looked at. */
const maxCookies = 16;

/** The values of cookies of sign-ins. */
export function cookiesOf({ header }: PageRequest, { origin = "" }: Links): readonly string[] {
  const prefix = `${origin.startsWith("https://") ? "__Host-" : ""}${cookieName}`;
  const pairs = (header("cookie") ?? "").split(";").map((pair) => pair.trim());
  const own = pairs.filter((pair) => pair.startsWith(prefix)).slice(0, maxCookies);
  return own.map((pair) => pair.slice(pair.indexOf("=") + 1)).filter((value) => value !== "");
}

/** How far a person is that opened a link. Each step has a new cookie, so that one that was planted or seen before is of no use. */
type SignInStep =
  /** At the caller's issuer, which says who the person is. */
  | { readonly kind: "proving"; readonly pending: PendingIdentity }
  /** Proven to be the caller, and asked to agree. `word` comes back with the form. */
  | { readonly kind: "agreeing"; readonly pending: PendingLogin; readonly word: string }
  /** At the authorization server of the server. */
  | { readonly kind: "leaving"; readonly pending: PendingLogin };

/** A link that one browser opened. */
export interface SignIn<Step extends SignInStep = SignInStep> {
  readonly ticket: Ticket;
  /** The link again, as it is written in an address. */
  readonly token: string;
  readonly step: Step;
}

/** A step, by its name. */
export type StepOf<Kind extends SignInStep["kind"]> = SignInStep & { readonly kind: Kind };

interface KeptSignIn extends SignIn {
  readonly cookie: string;
  readonly endsAt: number;
}

/** Most sign-ins at the same time, of all callers and of one. */
const maxSignIns = 256;
const maxEach = 8;

/** The sign-ins that are underway, each bound to the cookie of its browser. */
export class SignIns {
  readonly #clock: Clock;
  /** By the hash of the cookie, in the order of their beginning. */
  readonly #signIns = new Map<string, KeptSignIn>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Begins the next step of a sign-in, and gives the value of its cookie. */
  begin(signIn: SignIn): string {
    this.#sweep();
    const own = [...this.#signIns.values()].filter(({ ticket: { owner } }) => owner === signIn.ticket.owner);
    const [oldest] =
      own.length >= maxEach ? own : this.#signIns.size >= maxSignIns ? this.#signIns.values() : [];
    if (oldest !== undefined) this.#signIns.delete(oldest.cookie);
    const value = newSecret();
    const cookie = digest(value);
    this.#signIns.set(cookie, { ...signIn, cookie, endsAt: this.#clock.now() + linkMs });
    return value;
  }

  /** Ends a step of the sign-in of a browser: each is used once. Undefined where the browser is in no such step. */
  take<Kind extends SignInStep["kind"]>(
    kind: Kind,
    cookie: string | undefined,
    isIt: (signIn: SignIn<StepOf<Kind>>) => boolean,
  ): SignIn<StepOf<Kind>> | undefined {
    this.#sweep();
    const signIn = cookie === undefined ? undefined : this.#signIns.get(digest(cookie));
    if (signIn?.step.kind !== kind) return undefined;
    const found = signIn as KeptSignIn & SignIn<StepOf<Kind>>;
    if (!isIt(found)) return undefined;
    this.#signIns.delete(signIn.cookie);
    return found;
  }

  /** Ends the sign-in whose browser was sent to another site with this state. Returns its ticket, if there is one. */
  drop(state: string | null): Ticket | undefined {
    for (const signIn of this.#signIns.values()) {
      if (signIn.step.kind === "agreeing" || signIn.step.pending.state !== state) continue;
      this.#signIns.delete(signIn.cookie);
      return signIn.ticket;
    }
    return undefined;
  }

  /** A caller was revoked: its sign-ins end. */
  revoke(caller: string | undefined): void {
    for (const { ticket, cookie } of this.#signIns.values())
      if (ticket.caller === caller) this.#signIns.delete(cookie);
  }

  #sweep(): void {
    const now = this.#clock.now();
    for (const { cookie, endsAt } of this.#signIns.values()) {
      if (endsAt > now) return;
      this.#signIns.delete(cookie);
    }
  }
}

/** A value that cannot be guessed. */
export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

export function digest(value: string): string {
  return createHash("sha256").update(value).digest("base64url");
}

/** How the visitor of a link proves to be its caller: as the caller proves who it is to the gateway. */
type ProofKind = "machine" | "key" | "certificate" | "issuer";

export function proofOf({ caller, issuer }: Ticket): ProofKind {
  if (caller === undefined) return "machine";
  if (caller.startsWith("cert:")) return "certificate";
  return issuer === undefined ? "key" : "issuer";
}

interface CallerProofOptions {
  readonly links: Links;
  readonly logins: Logins;
  readonly clock: Clock;
  /** Tells callers by their keys and certificates; refuses those that were revoked. */
  readonly admit: Authenticate;
  readonly issuers: () => readonly IssuerConfig[];
}

/** Finds out whether proof are the callers that links were made for. */
export interface CallerProof {
  /** Whether the visitor of this request is the caller, where the request itself can prove that. */
  isCaller(ticket: Ticket, request: PageRequest): Promise<boolean>;
  /** Begins to ask the caller's issuer who the visitor is. */
  beginIdentity(ticket: Ticket): Promise<PendingIdentity>;
  /** Whether the issuer named the caller. Rejects with an `AuthorizationError`. */
  isNamed(ticket: Ticket, pending: PendingIdentity, callback: URL): Promise<boolean>;
}

export function createCallerProof(options: CallerProofOptions): CallerProof {
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
