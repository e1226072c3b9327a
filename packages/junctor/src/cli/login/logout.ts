import {
  toClientAuth,
  type Credential,
  credentialId,
  toServer,
  createGuardedFetch,
  type GuardedFetch,
} from "@junctor/client/internal";
import { toOwnerName } from "../../accounts/index.ts";
import { type FileStore, sharedOwner } from "../../credentials/index.ts";
import { note, print, type Run, toSafeLine } from "../terminal/index.ts";
import { findLoginServer } from "./login-server.ts";
import { openLogins } from "./logins-store.ts";

/** `junctor logout` */
export const logout: Run<"logout"> = async (parsed) => {
  const { name, url, oauth } = await findLoginServer("logout", parsed);
  const { store } = openLogins();
  const caller = parsed.flags.caller;
  const whose = caller === undefined ? "" : ` of ${toSafeLine(caller)}`;
  const removed: Credential[] = [];
  for (const id of caller === undefined ? [credentialId(url, sharedOwner)] : idsOf(store, url, caller)) {
    const stored = (await store.read(id)) as Credential | undefined;
    await store.alone(id, () => store.remove(id));
    if (stored !== undefined) removed.push(stored);
  }
  if (removed.length === 0) {
    await print(`There was no login${whose} for ${name}.\n`);
    return 0;
  }
  const fetch = createGuardedFetch({ server: url });
  const revoked = await Promise.all(
    removed.map((stored) => revokeCredential(stored, { fetch, privateKey: oauth?.privateKey })),
  );
  await print(
    caller === undefined ? `Logged out of ${name}.\n` : `Took the account${whose} at ${name} away.\n`,
  );
  if (revoked.includes(false))
    await note("junctor: its authorization server did not revoke the access, which ends by itself\n");
  return 0;
};

/** The credentials of a caller at a server: a name may have been given to several people in the course of time. */
function idsOf(store: FileStore, url: URL, caller: string): readonly string[] {
  return [...store.all().keys()].filter((id) => {
    const [kind, server, owner = ""] = JSON.parse(id) as readonly string[];
    return kind === "credential" && server === url.href && toOwnerName(owner) === caller;
  });
}

/** Has the authorization server forget a credential (RFC 7009). False where that failed. */
async function revokeCredential(
  { issuer, client, accessToken, refreshToken }: Credential,
  { fetch, privateKey }: { readonly fetch: GuardedFetch; readonly privateKey?: string | undefined },
): Promise<boolean> {
  const { revocationEndpoint } = issuer;
  if (revocationEndpoint === undefined) return false;
  try {
    const auth = await toClientAuth(client, privateKey);
    const headers = new Headers({ "content-type": "application/x-www-form-urlencoded" });
    const body = new URLSearchParams({ token: refreshToken ?? accessToken });
    await auth(toServer(issuer), { client_id: client.clientId }, body, headers);
    const request = { method: "POST", headers: Object.fromEntries(headers), body: body.toString() } as const;
    return (await fetch(new URL(revocationEndpoint), request)).status === 200;
  } catch {
    return false;
  }
}
