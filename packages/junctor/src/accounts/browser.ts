import type { PageRequest } from "@junctor/server/internal";
import { type Links, linkMs, type Ticket } from "./links.ts";

/** A visit that cannot go on, in words for the visitor. */
export class VisitRefusal extends Error {
  override readonly name = "VisitRefusal";
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
    throw new VisitRefusal(403, "The form was not sent by the page of this gateway.");
}

const cookieName = "junctor-connect-";

/** A cookie of one visit: for this host alone, unseen by scripts, and sent along when a sign-in leads back. */
export function toCookie({ nonce }: Ticket, { origin = "" }: Links, value: string): string {
  const isSecure = origin.startsWith("https://");
  const name = `${isSecure ? "__Host-" : ""}${cookieName}${nonce.slice(0, 8)}`;
  const age = value === "" ? 0 : linkMs / 1000;
  return `${name}=${value}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
}

/** Most cookies of visits that are looked at. */
const maxCookies = 16;

/** The values of cookies of visits. */
export function cookiesOf({ header }: PageRequest, { origin = "" }: Links): readonly string[] {
  const prefix = `${origin.startsWith("https://") ? "__Host-" : ""}${cookieName}`;
  const pairs = (header("cookie") ?? "").split(";").map((pair) => pair.trim());
  const own = pairs.filter((pair) => pair.startsWith(prefix)).slice(0, maxCookies);
  return own.map((pair) => pair.slice(pair.indexOf("=") + 1)).filter((value) => value !== "");
}
