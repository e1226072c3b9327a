import { type OpenPage, type CredentialStore, connect } from "@junctor/client";
import { createMemoryStore, type Credential, credentialId } from "@junctor/client/internal";
import { AuthorizationError } from "@junctor/core/errors";
import { createServerAuthorizer, sharedOwner } from "../../credentials/index.ts";
import { junctor } from "../../invocation/index.ts";
import { readVersion } from "../index.ts";
import {
  type Interruption,
  listenForCallback,
  note,
  openInBrowser,
  print,
  type Run,
  toSafeLine,
  UsageError,
  watchInterrupt,
  withTerminal,
} from "../terminal/index.ts";
import { findLoginServer, type LoginServer } from "./login-server.ts";
import { openLogins } from "./logins-store.ts";

/** The port of the callback; it stays the same, because some authorization servers compare it with the registered one. */
const callbackPort = 33_418;

/** `junctor login` */
export const login: Run<"login"> = async (parsed) => {
  const server = await findLoginServer("login", parsed);
  using interruption = watchInterrupt();
  const scopes = await signIn(server, parsed.flags["no-browser"], interruption);
  if (scopes === undefined) {
    await print(`${server.name} wants no sign-in.\n`);
    return 0;
  }
  const access = scopes.length === 0 ? "" : ` Access: ${toSafeLine(scopes.join(", "))}.`;
  await print(`Connected.${access}\n`);
  return 0;
};

/** Resolves with the scopes that were granted; undefined when the server let us in without. */
async function signIn(
  { name, url, oauth }: LoginServer,
  isPasted: boolean,
  interruption: Interruption,
): Promise<readonly string[] | undefined> {
  if (oauth?.grant === "client_credentials")
    throw new UsageError(
      `${name} uses client_credentials: it needs no sign-in; ${junctor("check")} tries it`,
    );
  const { signal } = interruption;
  const logins = openLogins();
  const id = credentialId(url, sharedOwner);
  // The credential before this sign-in stays in use until the server let us in with the new one.
  const attempt = createMemoryStore();
  const storeOf = (each: string): CredentialStore => (each === id ? attempt : logins.store);
  const store: CredentialStore = {
    read: (each) => storeOf(each).read(each),
    write: (each, value) => storeOf(each).write(each, value),
    remove: (each) => storeOf(each).remove(each),
    alone: (each, work) => storeOf(each).alone(each, work),
  };
  await using listener = await listenForCallback(callbackPort);
  const open: OpenPage = async (page, { redirectUrl }) => {
    const state = new URL(page).searchParams.get("state") ?? "";
    if (isPasted) return paste(name, page, redirectUrl, interruption);
    const hint = "(opened in your browser; Ctrl-C to stop)";
    await note(`${name} asks you to sign in: ${page}\n${hint}\n`);
    openInBrowser(page);
    return listener.next(state, signal);
  };
  const { redirectUrl } = listener;
  const advice = junctor(`login ${name}`);
  try {
    const authorization = createServerAuthorizer({
      server: url,
      oauth,
      owner: sharedOwner,
      logins: { store },
      advice,
      redirectUrl,
      open,
    });
    const clientInfo = { name: "junctor", title: "Junctor command line", version: readVersion() };
    await using client = await connect(url, { clientInfo, authorization, signal });
    await client.agreement();
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
  const credential = (await attempt.read(id)) as Credential | undefined;
  // Not while another process renews the one before, which would overwrite it.
  if (credential !== undefined) await logins.store.alone(id, () => logins.store.write(id, credential));
  return credential?.scopes;
}

async function paste(
  name: string,
  page: string,
  redirectUrl: string,
  { signal, interrupt }: Interruption,
): Promise<string> {
  await note(
    `${name} asks you to sign in. Open this address in a browser:\n\n${page}\n\n` +
      `In the end the browser shows an address that begins with ${redirectUrl}; it may say that it cannot be reached.\n`,
  );
  const line = await withTerminal(interrupt, signal, (ask) => ask("Paste that address here: "));
  const text = line?.trim() ?? "";
  if (URL.canParse(text)) return text;
  throw new AuthorizationError("callback", name, "no address was given; begin again");
}
