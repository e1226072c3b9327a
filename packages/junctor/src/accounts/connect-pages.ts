import { createHash, randomBytes } from "node:crypto";
import {
  beginIdentity,
  createGuardedFetch,
  type Credential,
  type CredentialEvent,
  credentialId,
  finishIdentity,
  finishLogin,
  type IdentityTerms,
  type LoginTerms,
  type PendingIdentity,
  type PendingLogin,
  prepareLogin,
} from "@junctor/client/internal";
import type { Clock } from "@junctor/core/async";
import { isLoopback } from "@junctor/core/channel";
import { AuthorizationError } from "@junctor/core/errors";
import type { Seal } from "@junctor/core/mcp";
import type { Authenticate } from "@junctor/server";
import { type PageAnswer, type PageRequest, type Pages, toCaller } from "@junctor/server/internal";
import { type GatewayConfig, hasCertificates, isOpen, type IssuerConfig } from "../config/index.ts";
import { type Logins, toLoginTerms } from "../credentials/index.ts";
import type { GatewayLog } from "../log/index.ts";
import { logCredential } from "../upstream/index.ts";
import { toOwner } from "./account.ts";
import {
  callbackPath,
  connectPath,
  documentPath,
  identityPath,
  linkMs,
  type Links,
  type Ticket,
} from "./links.ts";
import type { PerCallerServer, PerCallerServers } from "./per-caller-servers.ts";

interface ConnectionsOptions {
  readonly links: Links;
  readonly seal: Seal;
  readonly clock: Clock;
  readonly log: GatewayLog;
  readonly logins: Logins;
  readonly config: () => GatewayConfig;
  readonly fleet: { readonly perCaller: PerCallerServers };
  readonly admit: Authenticate;
  readonly onCredential: (server: string, event: CredentialEvent) => void;
}

export function createConnections(options: ConnectionsOptions): {
  readonly pages: Pages;
  revoke(caller: string | undefined): void;
} {
  const { links, seal, clock, log, logins, config, admit, onCredential } = options;
  const { perCaller } = options.fleet;
  const signIns = new SignIns(clock);
  const issuers = (): GatewayConfig["issuers"] => config().issuers;
  const pages = new ConnectPages({
    links,
    signIns,
    proof: createCallerProof({ links, logins, clock, admit, issuers }),
    logins,
    seal,
    clock,
    servers: () => perCaller.all,
    issuerNames: () => issuers().map(({ name }) => name),
    onEvent: (server, event) => {
      logCredential(log, server, event);
      onCredential(server, event);
    },
  });
  return {
    pages,
    revoke: (caller) => {
      signIns.revoke(caller);
      perCaller.revoke(caller);
    },
  };
}

/** Whether a caller can prove on a page who it is: the config knows it, and it was not revoked. */
export function isProvable(
  config: GatewayConfig,
  { caller, issuer, subject }: Pick<Ticket, "caller" | "issuer" | "subject">,
  isRevoked: (caller: string) => boolean,
): boolean {
  if (caller === undefined) return isOpen(config);
  if (isRevoked(caller)) return false;
  if (caller.startsWith("cert:")) return hasCertificates(config);
  if (issuer === undefined) return config.keys.some(({ name }) => name === caller);
  return config.issuers.some((each) => each.issuer === issuer && caller === `${each.name}:${subject}`);
}

interface ConnectPagesOptions {
  readonly links: Links;
  readonly signIns: SignIns;
  readonly proof: CallerProof;
  readonly logins: Logins;
  readonly seal: Seal;
  readonly clock: Clock;
  readonly servers: () => readonly PerCallerServer[];
  readonly issuerNames: () => readonly string[];
  readonly onEvent: (server: string, event: CredentialEvent) => void;
}

const formBinding = "junctor: form of a link";
const linkExpired =
  "This link has expired, was used before, or was not issued by this gateway. Call the tool again to get a new one.";

/**
 * The pages on which a person connects an account of a caller. A link is not a login: whoever opens it proves to be the caller, sees what will
 * happen and agrees, and only then is sent to the authorization server of the server.
 */
class ConnectPages implements Pages {
  readonly #options: ConnectPagesOptions;
  readonly #links: Links;
  readonly #signIns: SignIns;
  readonly #proof: CallerProof;
  readonly #logins: Logins;
  readonly #clock: Clock;
  readonly #seal: Seal;

  constructor(options: ConnectPagesOptions) {
    this.#options = options;
    this.#links = options.links;
    this.#signIns = options.signIns;
    this.#proof = options.proof;
    this.#logins = options.logins;
    this.#clock = options.clock;
    this.#seal = options.seal;
  }

  methodsAt(path: string): readonly string[] | undefined {
    if (this.#links.origin === undefined || this.#options.servers().length === 0) return undefined;
    if (path.startsWith(connectPath)) return ["GET", "HEAD", "POST"];
    if (path === documentPath) return ["GET", "HEAD"];
    return path.startsWith(callbackPath) || path.startsWith(identityPath) ? ["GET"] : undefined;
  }

  listensAt(url: string): void {
    this.#links.listensAt(url);
  }

  async serve(request: PageRequest): Promise<PageAnswer> {
    try {
      return await this.#answer(request);
    } catch (error) {
      if (error instanceof PageRefusal) return toErrorPage(error.status, error.message);
      if (error instanceof AuthorizationError) return toErrorPage(502, `${error.message}.`);
      throw error;
    }
  }

  /** The ticket of a link that may be used now, and its server. */
  #openLink(token: string): { readonly ticket: Ticket; readonly server: PerCallerServer } {
    const ticket = this.#links.open(token);
    if (ticket === undefined) throw new PageRefusal(410, linkExpired);
    return { ticket, server: this.#serverOf(ticket) };
  }

  #serverOf(ticket: Ticket): PerCallerServer {
    const server = this.#options.servers().find(({ config }) => config.name === ticket.server);
    const isSame = server?.config.launch.kind === "http" && server.config.launch.url === ticket.url;
    if (server === undefined || !isSame || !this.#links.isKnown(ticket))
      throw new PageRefusal(410, linkExpired);
    return server;
  }

  #reportRefusal(ticket: Ticket, reason: string, issuer?: string): void {
    const { caller, server } = ticket;
    this.#options.onEvent(server, {
      kind: "connect_refused",
      reason,
      ...(caller === undefined ? {} : { caller }),
      ...(issuer === undefined ? {} : { issuer }),
    });
  }

  #termsOf({ owner, server: name }: Ticket, { config }: PerCallerServer): LoginTerms {
    const url = config.launch.kind === "http" ? config.launch.url : "";
    const { oauth } = config;
    return toLoginTerms({
      server: new URL(url),
      oauth,
      owner,
      logins: this.#logins,
      advice: "",
      clock: this.#clock,
      ...this.#links.signInAt(name),
    });
  }

  /** The first page: it names the caller and the server, and asks for proof. */
  #showLink(token: string): PageAnswer {
    const { ticket, server } = this.#openLink(token);
    const value = newSecret();
    const form = this.#seal.seal({ cookie: digest(value), nonce: ticket.nonce }, formBinding, linkMs);
    const key = markup`<p><label>The key that this caller presents to the gateway<br><input type="password" name="key" autocomplete="off" required></label></p>`;
    const proof = proofOf(ticket);
    const button = proof === "issuer" ? `Sign in at ${new URL(ticket.issuer ?? "").host}` : "Continue";
    const hint =
      proof === "issuer"
        ? "First show who you are."
        : proof === "key"
          ? "First show that you are this caller: enter its key."
          : "";
    return toPage({
      title: `Connect your account at ${ticket.server}`,
      body: markup`${toFacts(factsOf(ticket, server))}<p>If you did not ask for this in a program of yours, close this page: the account would be used by someone else. ${hint}</p>${toForm(
        connectPath + token,
        { step: "prove", form },
        button,
        proof === "key" ? key : undefined,
      )}`,
      cookie: toCookie(ticket, this.#links, value),
      hasForm: true,
    });
  }

  /** The second page, for a visitor who proved to be the caller: it says what will happen and asks for consent. */
  async #askConsent(ticket: Ticket, token: string): Promise<PageAnswer> {
    const server = this.#serverOf(ticket);
    const terms = this.#termsOf(ticket, server);
    const earlier = (await this.#logins.store.read(credentialId(terms.server, ticket.owner))) as
      | Credential
      | undefined;
    const pending = await prepareLogin(terms, { challenge: ticket.challenge, earlier });
    const word = newSecret();
    const cookie = this.#signIns.begin({ ticket, token, step: { kind: "agreeing", pending, word } });
    const { host } = new URL(pending.url);
    const scopes = pending.scopes.length === 0 ? "as the server decides" : pending.scopes.join(" ");
    return toPage({
      title: `Connect your account at ${ticket.server}`,
      body: markup`${toFacts([
        ...factsOf(ticket, server),
        ["You sign in at", host],
        ["Access", scopes],
        ["You come back to", pending.redirectUrl],
      ])}<p>Calls of this caller to ${ticket.server} will be made with the account that you sign in to now.</p>${toForm(
        connectPath + token,
        { step: "agree", word },
        `Go to ${host}`,
      )}`,
      cookie: toCookie(ticket, this.#links, cookie),
      hasForm: true,
    });
  }

  async #takeProof(token: string, request: PageRequest): Promise<PageAnswer> {
    const { ticket } = this.#openLink(token);
    const sealed = this.#seal.open(request.form.get("form") ?? "", formBinding);
    const { cookie, nonce } = (sealed.ok ? sealed.payload : {}) as { cookie?: string; nonce?: string };
    const isOwn = cookiesOf(request, this.#links).some((value) => digest(value) === cookie);
    if (!isOwn || nonce !== ticket.nonce)
      throw new PageRefusal(403, "Open the link again: this form is not of this browser.");
    if (proofOf(ticket) === "issuer") {
      const pending = await this.#proof.beginIdentity(ticket);
      const value = this.#signIns.begin({ ticket, token, step: { kind: "proving", pending } });
      return leave(pending, toCookie(ticket, this.#links, value));
    }
    if (await this.#proof.isCaller(ticket, request)) return this.#askConsent(ticket, token);
    return this.#refusePerson(ticket);
  }

  #refusePerson(ticket: Ticket): PageAnswer {
    this.#links.noteFailure(ticket);
    this.#reportRefusal(ticket, "the visitor is not the caller");
    return toErrorPage(403, "You are not the caller that this link was made for, so nothing was connected.");
  }

  #takeConsent(token: string, request: PageRequest): PageAnswer {
    const { ticket } = this.#openLink(token);
    const [signIn] = cookiesOf(request, this.#links).flatMap(
      (cookie) =>
        this.#signIns.take("agreeing", cookie, ({ ticket: { nonce }, step }) => {
          return nonce === ticket.nonce && step.word === request.form.get("word");
        }) ?? [],
    );
    if (signIn === undefined)
      throw new PageRefusal(403, "Open the link again: this form is not of this browser.");
    if (!this.#links.use(ticket)) throw new PageRefusal(410, linkExpired);
    const { pending } = signIn.step;
    const cookie = this.#signIns.begin({ ticket, token, step: { kind: "leaving", pending } });
    this.#reportEvent("connect_started", ticket, pending);
    return leave(pending, toCookie(ticket, this.#links, cookie));
  }

  #reportEvent(
    kind: CredentialEvent["kind"],
    { caller, server }: Ticket,
    { as, client }: PendingLogin,
  ): void {
    this.#options.onEvent(server, {
      kind,
      issuer: as.issuer,
      clientId: client.clientId,
      ...(caller === undefined ? {} : { caller }),
    });
  }

  /** The sign-in that an authorization server or issuer answered. Its state works once, and only in the browser that began it. */
  #takeAnswer<Kind extends "proving" | "leaving">(
    kind: Kind,
    request: PageRequest,
    redirectUrl: string,
  ): SignIn<StepOf<Kind>> {
    const state = request.query.get("state");
    const isOne = request.query.getAll("state").length === 1;
    const [signIn] = cookiesOf(request, this.#links).flatMap(
      (cookie) =>
        this.#signIns.take(kind, cookie, ({ step: { pending } }) => {
          return isOne && pending.state === state && pending.redirectUrl === redirectUrl;
        }) ?? [],
    );
    if (signIn !== undefined) return signIn;
    const stray = this.#signIns.drop(state);
    if (stray !== undefined) this.#reportRefusal(stray, "the answer came to another browser or path");
    throw new PageRefusal(
      403,
      "This answer belongs to no sign-in of this browser. Call the tool again to get a new link.",
    );
  }

  async #takeIdentity(request: PageRequest, callback: URL): Promise<PageAnswer> {
    const { ticket, token, step } = this.#takeAnswer("proving", request, callback.origin + callback.pathname);
    this.#serverOf(ticket);
    if (await this.#proof.isNamed(ticket, step.pending, callback)) return this.#askConsent(ticket, token);
    return this.#refusePerson(ticket);
  }

  async #takeLogin(request: PageRequest, callback: URL): Promise<PageAnswer> {
    const { ticket, step } = this.#takeAnswer("leaving", request, callback.origin + callback.pathname);
    const { pending } = step;
    const terms = this.#termsOf(ticket, this.#serverOf(ticket));
    const { server: url, fetch, client } = terms;
    const { privateKey } = client;
    try {
      const credential = await finishLogin(pending, callback, {
        server: url,
        fetch,
        clock: this.#clock,
        privateKey,
      });
      // The caller may have been revoked meanwhile, or the server removed.
      const server = this.#serverOf(ticket);
      const id = credentialId(url, ticket.owner);
      await this.#logins.store.alone(id, () => this.#logins.store.write(id, credential));
      this.#reportEvent("connect_done", ticket, pending);
      await server.noteConnected(ticket.owner);
    } catch (error) {
      this.#reportRefusal(
        ticket,
        error instanceof AuthorizationError ? error.code : "it failed",
        pending.as.issuer,
      );
      throw error;
    }
    return toPage({
      title: "Connected",
      body: markup`<p>Your account at ${ticket.server} is connected for ${ticket.caller ?? "this machine"}. You can close this page and go back to your program.</p>`,
      cookie: toCookie(ticket, this.#links, ""),
    });
  }

  async #answer(request: PageRequest): Promise<PageAnswer> {
    const { method, path, query } = request;
    const { origin } = this.#links;
    if (origin === undefined) throw new PageRefusal(404, "There are no pages here.");
    if (path === documentPath) return toDocument(this.#options);
    if (path.startsWith(connectPath)) {
      const token = path.slice(connectPath.length);
      if (method !== "POST") return this.#showLink(token);
      assertOwnForm(request, origin);
      return request.form.get("step") === "agree"
        ? this.#takeConsent(token, request)
        : this.#takeProof(token, request);
    }
    const callback = new URL(`${origin}${path}?${query.toString()}`);
    return path.startsWith(identityPath)
      ? this.#takeIdentity(request, callback)
      : this.#takeLogin(request, callback);
  }
}

function factsOf({ caller, server }: Ticket, { config: { launch } }: PerCallerServer): [string, string][] {
  const host = launch.kind === "http" ? new URL(launch.url).host : "";
  return [
    ["Caller", caller ?? "programs of this machine"],
    ["Server", `${server} (${host})`],
  ];
}

/** Sends the browser on with a page: the rule that forms go to this origin only would block a redirect. */
function leave({ url }: PendingLogin, cookie: string): PageAnswer {
  const { host } = new URL(url);
  return toPage({
    title: `Go on at ${host}`,
    body: markup`<p><a href="${url}">Continue at ${host}</a></p>`,
    cookie,
    leadsTo: url,
  });
}

/** The document that describes the gateway, as a client, to authorization servers. */
function toDocument({
  links,
  servers,
  issuerNames,
}: {
  readonly links: Links;
  readonly servers: () => readonly PerCallerServer[];
  readonly issuerNames: () => readonly string[];
}): PageAnswer {
  const { origin = "" } = links;
  const callbacks = servers().map(({ config: { name } }) => `${callbackPath}${encodeURIComponent(name)}`);
  const paths = [...callbacks, ...issuerNames().map((name) => `${identityPath}${name}`)];
  const document = {
    client_id: `${origin}${documentPath}`,
    client_name: "Junctor",
    client_uri: origin,
    redirect_uris: paths.map((path) => `${origin}${path}`),
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    application_type: links.isLocal ? "native" : "web",
  };
  const headers = { "content-type": "application/json", "cache-control": "max-age=300" };
  return { status: 200, headers, body: JSON.stringify(document) };
}

/** HTML that is safe to write into a page: every value in it was escaped. */
interface Markup {
  readonly html: string;
}

const style =
  "body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}" +
  "h1{font-size:1.4rem}dl{display:grid;grid-template-columns:max-content 1fr;gap:.3rem 1rem}dt{color:#555}dd{margin:0;" +
  "overflow-wrap:anywhere}button{font:inherit;padding:.5rem 1.2rem}input{font:inherit;width:100%;box-sizing:border-box;padding:.4rem}" +
  "@media(prefers-color-scheme:dark){body{color:#eee;background:#181818}dt{color:#aaa}a{color:#8bf}}";
const styleHash = createHash("sha256").update(style).digest("base64");

/** The page loads nothing and runs nothing, no other page frames it, and its forms go to this origin only. */
const policy = [
  "default-src 'none'",
  `style-src 'sha256-${styleHash}'`,
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");

const headers = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": policy,
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-store",
} as const;

interface PageParts {
  readonly status?: number;
  readonly title: string;
  readonly body: Markup;
  /** The value of `Set-Cookie`. */
  readonly cookie?: string;
  /** The URL that the page sends the browser to. */
  readonly leadsTo?: string;
  /** Whether it has a form: under the referrer policy `no-referrer`, the browser would send `Origin: null` with it. */
  readonly hasForm?: boolean;
}

/** Escapes every value between the parts of a template. */
function markup(parts: TemplateStringsArray, ...values: readonly (string | Markup)[]): Markup {
  const text = values.map((value) => (typeof value === "string" ? escape(value) : value.html));
  return { html: parts.map((part, index) => part + (text[index] ?? "")).join("") };
}

function toFacts(facts: readonly (readonly [term: string, fact: string])[]): Markup {
  const items = facts.map(([term, fact]) => markup`<dt>${term}</dt><dd>${fact}</dd>`.html);
  return { html: `<dl>${items.join("")}</dl>` };
}

function toForm(
  action: string,
  hidden: { readonly [name: string]: string },
  button: string,
  fields: Markup = { html: "" },
): Markup {
  const inputs = Object.entries(hidden).map(
    ([name, value]) => markup`<input type="hidden" name="${name}" value="${value}">`.html,
  );
  return markup`<form method="post" action="${action}">${{ html: inputs.join("") }}${fields}<p><button>${button}</button></p></form>`;
}

function toPage({ status = 200, title, body, cookie, leadsTo, hasForm = false }: PageParts): PageAnswer {
  const redirect =
    leadsTo === undefined ? markup`` : markup`<meta http-equiv="refresh" content="0;url=${leadsTo}">`;
  const page = markup`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>${redirect}<style>${{ html: style }}</style></head><body><h1>${title}</h1>${body}</body></html>`;
  return {
    status,
    headers: {
      ...headers,
      "referrer-policy": hasForm ? "same-origin" : "no-referrer",
      ...(cookie === undefined ? {} : { "set-cookie": cookie }),
    },
    body: page.html,
  };
}

function toErrorPage(status: number, text: string): PageAnswer {
  return toPage({ status, title: "The account was not connected", body: markup`<p>${text}</p>` });
}

function escape(text: string): string {
  const shown = text.replaceAll(/[\p{Cc}\p{Cf}]/gu, " ");
  return shown.replaceAll(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** Why a page is not shown, in words for the person. */
class PageRefusal extends Error {
  override readonly name = "PageRefusal";
  readonly status: number;

  constructor(status: number, text: string) {
    super(text);
    this.status = status;
  }
}

/** A page of another site can send a form here, but cannot claim the origin of this one. */
function assertOwnForm({ header }: PageRequest, origin: string): void {
  const site = header("sec-fetch-site");
  if (header("origin") !== origin || (site !== undefined && site !== "same-origin"))
    throw new PageRefusal(403, "The form was not sent by the page of this gateway.");
}

const cookieName = "junctor-connect-";

/** The cookie of one sign-in: for this host alone, hidden from scripts, and sent when another site redirects back here. */
function toCookie({ nonce }: Ticket, { origin = "" }: Links, value: string): string {
  const isSecure = origin.startsWith("https://");
  const name = `${isSecure ? "__Host-" : ""}${cookieName}${nonce.slice(0, 8)}`;
  const age = value === "" ? 0 : linkMs / 1000;
  return `${name}=${value}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
}

/** The most sign-in cookies that are read from one request. */
const maxCookies = 16;

/** The values of the sign-in cookies of a request. */
function cookiesOf({ header }: PageRequest, { origin = "" }: Links): readonly string[] {
  const prefix = `${origin.startsWith("https://") ? "__Host-" : ""}${cookieName}`;
  const pairs = (header("cookie") ?? "").split(";").map((pair) => pair.trim());
  const own = pairs.filter((pair) => pair.startsWith(prefix)).slice(0, maxCookies);
  return own.map((pair) => pair.slice(pair.indexOf("=") + 1)).filter((value) => value !== "");
}

/** How far a sign-in is. Each step has a new cookie, so that a cookie planted or seen earlier is useless. */
type SignInStep =
  /** At the caller's issuer, which says who the person is. */
  | { readonly kind: "proving"; readonly pending: PendingIdentity }
  /** Proven to be the caller, and asked to agree. `word` comes back with the form. */
  | { readonly kind: "agreeing"; readonly pending: PendingLogin; readonly word: string }
  /** At the server's authorization server. */
  | { readonly kind: "leaving"; readonly pending: PendingLogin };

/** A link that one browser opened. */
interface SignIn<Step extends SignInStep = SignInStep> {
  readonly ticket: Ticket;
  /** The token of the link, as it stands in its URL. */
  readonly token: string;
  readonly step: Step;
}

/** The step of this `kind`. */
type StepOf<Kind extends SignInStep["kind"]> = SignInStep & { readonly kind: Kind };

interface KeptSignIn extends SignIn {
  readonly cookie: string;
  readonly endsAt: number;
}

/** The most sign-ins at the same time, of all callers and of one. */
const maxSignIns = 256;
const maxEach = 8;

/** The sign-ins that are underway, each bound to the cookie of its browser. */
class SignIns {
  readonly #clock: Clock;
  /** By the hash of the cookie, oldest first. */
  readonly #signIns = new Map<string, KeptSignIn>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Begins the next step of a sign-in. Returns the value of its cookie. */
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

  /** Takes the step that a browser is in, so that it is used once. Undefined when the browser is not in such a step. */
  take<Kind extends SignInStep["kind"]>(
    kind: Kind,
    cookie: string | undefined,
    matches: (signIn: SignIn<StepOf<Kind>>) => boolean,
  ): SignIn<StepOf<Kind>> | undefined {
    this.#sweep();
    const signIn = cookie === undefined ? undefined : this.#signIns.get(digest(cookie));
    if (signIn?.step.kind !== kind) return undefined;
    const found = signIn as KeptSignIn & SignIn<StepOf<Kind>>;
    if (!matches(found)) return undefined;
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
function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

function digest(value: string): string {
  return createHash("sha256").update(value).digest("base64url");
}

function proofOf({ caller, issuer }: Ticket): "machine" | "key" | "certificate" | "issuer" {
  if (caller === undefined) return "machine";
  if (caller.startsWith("cert:")) return "certificate";
  return issuer === undefined ? "key" : "issuer";
}

/** Finds out whether visitors are the callers that links were made for. */
interface CallerProof {
  /** Whether the visitor of this request is the caller, where the request itself can prove that. */
  isCaller(ticket: Ticket, request: PageRequest): Promise<boolean>;
  /** Begins to ask the caller's issuer who the visitor is. */
  beginIdentity(ticket: Ticket): Promise<PendingIdentity>;
  /** Whether the issuer named the caller. Rejects with an `AuthorizationError`. */
  isNamed(ticket: Ticket, pending: PendingIdentity, callback: URL): Promise<boolean>;
}

function createCallerProof(options: {
  readonly links: Links;
  readonly logins: Logins;
  readonly clock: Clock;
  /** Identifies callers by their keys and certificates; refuses revoked ones. */
  readonly admit: Authenticate;
  readonly issuers: () => readonly IssuerConfig[];
}): CallerProof {
  const { links, logins, clock, admit, issuers } = options;
  const termsFor = ({ issuer: url }: Ticket): IdentityTerms => {
    const known = issuers().find(({ issuer }) => issuer === url);
    const { origin } = links;
    if (known === undefined || origin === undefined)
      throw new AuthorizationError("metadata", url ?? "", "it is not an issuer of this gateway any more");
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
      const readHeader = (name: string): string | undefined =>
        name !== "authorization" ? header(name) : key === undefined ? undefined : `Bearer ${key}`;
      const found = toCaller(
        await admit(readHeader, {
          path: "/mcp",
          remoteAddress,
          ...(key === undefined ? { certificate } : {}),
        }),
      );
      return found !== undefined && toOwner({ caller: found.name, identity: found }) === owner;
    },
    beginIdentity: (ticket) => beginIdentity(termsFor(ticket)),
    isNamed: async (ticket, pending, callback) =>
      (await finishIdentity(pending, callback, termsFor(ticket))) === ticket.subject,
  };
}

/** Headers of a proxy, behind which every visitor would seem to be on this machine. */
const signsOfProxies = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

function isOfThisMachine({ remoteAddress = "", header }: PageRequest): boolean {
  const isNear = isLoopback(remoteAddress.replace(/^::ffff:/, ""));
  return isNear && signsOfProxies.every((name) => header(name) === undefined);
}
