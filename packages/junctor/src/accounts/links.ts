import { randomBytes } from "node:crypto";
import type { Clock } from "@junctor/core/async";
import { isLoopback } from "@junctor/core/channel";
import type { BearerChallenge } from "@junctor/core/errors";
import type { Caller, Seal } from "@junctor/core/mcp";

/** The caller and the server of a link. It is not a login: the page finds out whether whoever opens it is the caller. */
export interface Ticket {
  readonly nonce: string;
  /** The caller, and the owner of its accounts; see `toOwner`. */
  readonly owner: string;
  readonly caller?: string;
  readonly issuer?: string;
  readonly subject?: string;
  /** The server, by its name and by its URL: an edit of the config may give the name to another. */
  readonly server: string;
  readonly url: string;
  /** What the server demanded, where it did. */
  readonly challenge?: BearerChallenge;
}

interface NewTicket extends Pick<Ticket, "owner" | "server" | "url"> {
  readonly caller: string | undefined;
  readonly identity: Caller | undefined;
  readonly challenge: BearerChallenge | undefined;
}

export interface LinksOptions {
  readonly seal: Seal;
  readonly clock: Clock;
  /** The URL that clients know the endpoint by, where the config says. */
  readonly publicUrl?: string | undefined;
  /** Whether a caller may come in, and can prove on a page who it is. */
  readonly isKnown: (caller: Pick<Ticket, "caller" | "issuer" | "subject">) => boolean;
}

/** How long a link is valid. */
export const linkMs: number = 10 * 60_000;
/** The most links that are remembered as used, or tried without success. */
const maxNoted = 10_000;
/** The most failed proofs on one link. */
const maxTries = 5;
/** Longest scopes of a challenge that go into a link. */
const maxScopes = 1000;

/** Where authorization servers redirect to. Each server has a path of its own, so that no server passes for another. */
export const callbackPath = "/oauth/callback/";
/** The same for the issuers of callers, which say who a person is. */
export const identityPath = "/oauth/identity/";
/** Describes the gateway to authorization servers. */
export const documentPath = "/oauth/client.json";
export const connectPath = "/connect/";

const binding = "junctor: link to connect an account";

/** The links at which callers connect their accounts. */
export class Links {
  readonly #options: LinksOptions;
  /** Failed tries by nonce, oldest first; infinite for a link that was used. */
  readonly #noted = new Map<string, number>();
  #listening: string | undefined;

  constructor(options: LinksOptions) {
    this.#options = options;
  }

  /** The origin of all pages: that of the public URL, else the listener's own if it is on this machine. Never the `Host` of a request. */
  get origin(): string | undefined {
    const { publicUrl } = this.#options;
    return publicUrl === undefined ? this.#listening : new URL(publicUrl).origin;
  }

  /** Whether the caller of a link may still come in. */
  isKnown(ticket: Pick<Ticket, "caller" | "issuer" | "subject">): boolean {
    return this.#options.isKnown(ticket);
  }

  /** Whether only this machine can reach the pages. */
  get isLocal(): boolean {
    const { origin } = this;
    return origin !== undefined && isLoopback(new URL(origin).hostname.replaceAll(/[[\]]/g, ""));
  }

  listensAt(url: string): void {
    const { origin, hostname } = new URL(url);
    if (isLoopback(hostname.replaceAll(/[[\]]/g, ""))) this.#listening = origin;
  }

  /** How the gateway signs callers in at a server: the redirect URL, and the document that describes the gateway. */
  signInAt(server: string): { readonly redirectUrl?: string; readonly clientDocument?: string } {
    const { origin } = this;
    return origin === undefined ? {} : signInAt(origin, server);
  }

  /** The URL of that document, which authorization servers fetch over HTTPS only. */
  get document(): { readonly clientDocument?: string } {
    return this.origin === undefined ? {} : documentAt(this.origin);
  }

  /** A new link. Undefined where the pages have no address, or the caller cannot prove on a page who it is. */
  create({ owner, caller, identity, server, url, challenge }: NewTicket): string | undefined {
    const { origin, isLocal } = this;
    if (origin === undefined || (caller === undefined && !isLocal)) return undefined;
    const { issuer, subject } = identity ?? {};
    const ticket: Ticket = {
      nonce: randomBytes(12).toString("base64url"),
      owner,
      server,
      url,
      ...(caller === undefined ? {} : { caller }),
      ...(issuer === undefined ? {} : { issuer }),
      ...(subject === undefined ? {} : { subject }),
      ...(challenge === undefined ? {} : { challenge: short(challenge) }),
    };
    if (!this.isKnown(ticket)) return undefined;
    return `${origin}${connectPath}${this.#options.seal.seal(ticket, binding, linkMs)}`;
  }

  /** The ticket in a link; undefined for a link that has expired, was used, or is not one of ours. */
  open(token: string): Ticket | undefined {
    const opened = this.#options.seal.open(token, binding);
    if (!opened.ok) return undefined;
    const ticket = opened.payload as Ticket;
    return (this.#noted.get(ticket.nonce) ?? 0) >= maxTries ? undefined : ticket;
  }

  /** Someone failed to prove to be the caller. */
  noteFailure({ nonce }: Ticket): void {
    this.#note(nonce, (this.#noted.get(nonce) ?? 0) + 1);
  }

  /** Uses a link; false when it was used before. */
  use({ nonce }: Ticket): boolean {
    if ((this.#noted.get(nonce) ?? 0) >= maxTries) return false;
    this.#note(nonce, Number.POSITIVE_INFINITY);
    return true;
  }

  #note(nonce: string, tries: number): void {
    const [oldest] = this.#noted.keys();
    if (this.#noted.size >= maxNoted && oldest !== undefined) this.#noted.delete(oldest);
    this.#noted.set(nonce, tries);
  }
}

/** The same as `Links.signInAt`, for pages at this origin. */
export function signInAt(
  origin: string,
  server: string,
): { readonly redirectUrl: string; readonly clientDocument?: string } {
  return { redirectUrl: `${origin}${callbackPath}${encodeURIComponent(server)}`, ...documentAt(origin) };
}

function documentAt(origin: string): { readonly clientDocument?: string } {
  return origin.startsWith("https://") ? { clientDocument: `${origin}${documentPath}` } : {};
}

/** Leaves out what is long: a server chooses its challenge, and the length of a URL is limited. */
function short({ scopes, resourceMetadata, ...challenge }: BearerChallenge): BearerChallenge {
  const hasShortScopes = scopes !== undefined && scopes.join(" ").length <= maxScopes;
  const hasShortMetadata = resourceMetadata !== undefined && resourceMetadata.length <= maxScopes;
  return {
    ...challenge,
    ...(hasShortScopes ? { scopes } : {}),
    ...(hasShortMetadata ? { resourceMetadata } : {}),
  };
}
