import { text } from "node:stream/consumers";
import { connect, type CredentialStore, type OpenPage } from "@junctor/client";
import {
  createGuardedFetch,
  createMemoryStore,
  type Credential,
  credentialId,
  type GuardedFetch,
  renewStored,
  toClientAuth,
  toServer,
} from "@junctor/client/internal";
import { systemClock } from "@junctor/core/async";
import { AuthorizationError } from "@junctor/core/errors";
import { suggest } from "@junctor/core/options";
import { toOwnerName } from "../../accounts/index.ts";
import { mayWantOAuth, type OAuthConfig } from "../../config/index.ts";
import {
  createServerAuthorizer,
  type FileStore,
  type Renewal,
  sharedOwner,
} from "../../credentials/index.ts";
import { junctor } from "../../invocation/index.ts";
import { findConfigFile, usualFiles } from "../config/index.ts";
import { readVersion } from "../index.ts";
import {
  type Interruption,
  listenForCallback,
  note,
  openInBrowser,
  type Parsed,
  print,
  type Run,
  type SharedValues,
  toRows,
  toSafeLine,
  UsageError,
  watchInterrupt,
  withTerminal,
} from "../terminal/index.ts";
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

/** Resolves with the scopes that were granted; undefined when the server wants no sign-in. */
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
  // The earlier credential stays in use until the server accepts the new one.
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
  // Not while another process renews the earlier credential, which would overwrite the new one.
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

/** A server that a person may sign in to. */
interface LoginServer {
  /** As the person named it. */
  readonly name: string;
  readonly url: URL;
  readonly oauth?: OAuthConfig;
}

/** Finds the server that a command line names: by its URL, or by its name in a config. Throws a `UsageError`. */
async function findLoginServer(
  command: string,
  parsed: Parsed<SharedValues<"config">>,
): Promise<LoginServer> {
  const [name, stray] = parsed.operands;
  if (name === undefined || stray !== undefined)
    throw new UsageError(`${command} takes one server: its URL, or its name in the config`);
  if (/^https?:\/\//i.test(name)) {
    if (!URL.canParse(name)) throw new UsageError(`${JSON.stringify(name)} is not a valid URL`);
    const { origin, pathname } = new URL(name);
    return { name: `${origin}${pathname}`, url: new URL(name) };
  }
  const found = await findConfigFile(parsed);
  if (found === undefined) {
    const where = `--config FILE (there is no ${usualFiles.join(", ")} here)`;
    throw new UsageError(`${JSON.stringify(name)} is not a URL: write one, or name a config: ${where}`);
  }
  const { file, config } = found;
  const server = config.servers.find((each) => each.name === name);
  if (server === undefined) {
    const names = config.servers.map((each) => each.name);
    const hint = suggest(name, names, `it has ${names.join(", ") || "none"}`);
    throw new UsageError(`${file} has no server ${JSON.stringify(name)}; ${hint}`);
  }
  const { launch, oauth } = server;
  if (launch.kind !== "http")
    throw new UsageError(`${name} is a command on this machine: there is nothing to sign in to`);
  if (!mayWantOAuth(launch))
    throw new UsageError(`${name} has an Authorization header in ${file}: remove it to sign in instead`);
  return { name, url: new URL(launch.url), ...(oauth === undefined ? {} : { oauth }) };
}

/** `junctor renew-login`: the process that `renewByProcess` starts. */
export const renewLogin: Run<"renew-login"> = async () => {
  // The program that started us may be interrupted together with us; the new token must be stored all the same.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
  const { server: url, id, token, named, privateKey } = JSON.parse(await text(process.stdin)) as Renewal;
  const server = new URL(url);
  const { store } = openLogins();
  const fetch = createGuardedFetch({ server, named });
  const terms = { server, fetch, clock: systemClock, store, privateKey };
  await renewStored(terms, id, ({ accessToken }) => accessToken === token);
  return 0;
};
