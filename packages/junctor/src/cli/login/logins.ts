import type { Credential } from "@junctor/client/internal";
import { systemClock } from "@junctor/core/async";
import { toOwnerName } from "../../accounts/index.ts";
import { junctor } from "../../invocation/index.ts";
import { note, print, type Run, toRows, toSafeLine, UsageError } from "../terminal/index.ts";
import { openLogins } from "./logins-store.ts";

/** A stored login, for people and for `--json`. It has no token. */
interface ListedLogin {
  readonly server: string;
  /** The caller it belongs to, where callers of a gateway have accounts of their own. */
  readonly owner: string;
  readonly issuer: string;
  readonly scopes: readonly string[];
  readonly renews: boolean;
  readonly expiresAt?: string;
}

/** `junctor logins` */
export const logins: Run<"logins"> = async (parsed) => {
  const [stray] = parsed.operands;
  if (stray !== undefined) throw new UsageError("logins takes no operand");
  const { store } = openLogins();
  const listed = [...store.all()].flatMap(([id, value]) => toListed(id, value as Credential));
  if (parsed.flags.json) {
    await print(`${JSON.stringify(listed, undefined, 2)}\n`);
    return 0;
  }
  if (listed.length === 0) await note(`You are signed in nowhere; ${junctor("login")} NAME|URL signs in.\n`);
  else await print(`${toRows([head, ...listed.map(toRow)]).join("\n")}\n`);
  if (!store.hasOwnKey && listed.length > 0)
    await note(
      "Their key lies beside them, which protects copies of the files, not this account; JUNCTOR_SECRET sets another.\n",
    );
  return 0;
};

const head = ["server", "owner", "signed in at", "access", "ends"];

function toListed(
  id: string,
  { issuer, scopes, refreshToken, expiresAt }: Credential,
): readonly ListedLogin[] {
  const [kind, server = "", owner = ""] = JSON.parse(id) as readonly string[];
  if (kind !== "credential") return [];
  const { origin, pathname } = new URL(server);
  const ends = expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt).toISOString() };
  const renews = refreshToken !== undefined;
  return [
    {
      server: `${origin}${pathname}`,
      owner: toOwnerName(owner) ?? owner,
      issuer: issuer.issuer,
      scopes,
      renews,
      ...ends,
    },
  ];
}

function toRow({ server, owner, issuer, scopes, renews, expiresAt }: ListedLogin): readonly string[] {
  const isOver = expiresAt !== undefined && Date.parse(expiresAt) <= systemClock.date();
  const ends = renews ? "renewed by itself" : isOver ? "ended" : (expiresAt ?? "not known");
  return [server, owner, issuer, scopes.join(" "), ends].map(toSafeLine);
}
