import { toClientAuth } from "../auth/out/client-registration.ts";
import { type Credential, credentialId, toServer } from "../auth/out/credential.ts";
import { createGuardedFetch, type GuardedFetch } from "../auth/out/guarded-fetch.ts";
import { sharedOwner } from "../gateway/credentials/server-authorizer.ts";
import { type Command, configFlags } from "./command.ts";
import { findLoginServer } from "./login-server.ts";
import { openLogins } from "./logins-store.ts";
import { note, print } from "./print.ts";

/** `junctor logout` */
export const logout: Command = {
  name: "logout",
  summary: "Forget the access to a server, and have its authorization server forget it.",
  operands: "URL|NAME",
  flags: configFlags,
  examples: ["junctor logout https://mcp.example.com/mcp", "junctor logout linear"],
  run: async (parsed) => {
    const { name, url, oauth } = await findLoginServer("logout", parsed);
    const { store } = openLogins();
    const id = credentialId(url, sharedOwner);
    const stored = (await store.read(id)) as Credential | undefined;
    await store.remove(id);
    if (stored === undefined) {
      await print(`There was no login for ${name}.\n`);
      return 0;
    }
    const fetch = createGuardedFetch({ server: url });
    const isRevoked = await revokeCredential(stored, { fetch, privateKey: oauth?.privateKey });
    await print(`Logged out of ${name}.\n`);
    if (!isRevoked)
      await note("junctor: its authorization server could not be told; the access ends by itself\n");
    return 0;
  },
};

/** Has the authorization server forget a credential (RFC 7009). False where it could not be told. */
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
