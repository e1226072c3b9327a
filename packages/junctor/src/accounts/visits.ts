import { createHash, randomBytes } from "node:crypto";
import type { PendingLogin, PendingIdentity } from "@junctor/client/internal";
import type { Clock } from "@junctor/core/async";
import { linkMs, type Ticket } from "./links.ts";

/** How far the visitor of a link is. Each step has a new cookie, so that one that was planted or seen before is of no use. */
type VisitStep =
  /** At the caller's issuer, which says who the visitor is. */
  | { readonly kind: "proving"; readonly pending: PendingIdentity }
  /** Proven to be the caller, and asked to agree. `word` comes back with the form. */
  | { readonly kind: "agreeing"; readonly pending: PendingLogin; readonly word: string }
  /** At the authorization server of the server. */
  | { readonly kind: "leaving"; readonly pending: PendingLogin };

/** The visit of a link by one browser. */
interface LinkVisit<Step extends VisitStep = VisitStep> {
  readonly ticket: Ticket;
  /** The link again, as it is written in an address. */
  readonly token: string;
  readonly step: Step;
}

/** A step, by its name. */
type StepOf<Kind extends VisitStep["kind"]> = VisitStep & { readonly kind: Kind };

interface KeptVisit extends LinkVisit {
  readonly cookie: string;
  readonly endsAt: number;
}

/** Most visits at the same time, of all callers and of one. */
const maxVisits = 256;
const maxEach = 8;

/** The visits of links that are underway, each bound to the cookie of its browser. */
export class LinkVisits {
  readonly #clock: Clock;
  /** By the hash of the cookie, in the order of their beginning. */
  readonly #visits = new Map<string, KeptVisit>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Begins the next step of a visit, and gives the value of its cookie. */
  begin(visit: LinkVisit): string {
    this.#sweep();
    const own = [...this.#visits.values()].filter(({ ticket: { owner } }) => owner === visit.ticket.owner);
    const [oldest] =
      own.length >= maxEach ? own : this.#visits.size >= maxVisits ? this.#visits.values() : [];
    if (oldest !== undefined) this.#visits.delete(oldest.cookie);
    const value = newSecret();
    const cookie = digest(value);
    this.#visits.set(cookie, { ...visit, cookie, endsAt: this.#clock.now() + linkMs });
    return value;
  }

  /** Ends a step of the visit of a browser: each is used once. Undefined where the browser is in no such step. */
  take<Kind extends VisitStep["kind"]>(
    kind: Kind,
    cookie: string | undefined,
    isIt: (visit: LinkVisit<StepOf<Kind>>) => boolean,
  ): LinkVisit<StepOf<Kind>> | undefined {
    this.#sweep();
    const visit = cookie === undefined ? undefined : this.#visits.get(digest(cookie));
    if (visit?.step.kind !== kind) return undefined;
    const found = visit as KeptVisit & LinkVisit<StepOf<Kind>>;
    if (!isIt(found)) return undefined;
    this.#visits.delete(visit.cookie);
    return found;
  }

  /** Ends the visit whose browser was sent to another site with this state. Returns its ticket, if there is one. */
  drop(state: string | null): Ticket | undefined {
    for (const visit of this.#visits.values()) {
      if (visit.step.kind === "agreeing" || visit.step.pending.state !== state) continue;
      this.#visits.delete(visit.cookie);
      return visit.ticket;
    }
    return undefined;
  }

  /** A caller was revoked: its visits end. */
  revoke(caller: string | undefined): void {
    for (const { ticket, cookie } of this.#visits.values())
      if (ticket.caller === caller) this.#visits.delete(cookie);
  }

  #sweep(): void {
    const now = this.#clock.now();
    for (const { cookie, endsAt } of this.#visits.values()) {
      if (endsAt > now) return;
      this.#visits.delete(cookie);
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
