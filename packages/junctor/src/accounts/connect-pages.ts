import {
  type CredentialEvent,
  finishLogin,
  type PendingLogin,
  type Credential,
  credentialId,
  type LoginTerms,
  prepareLogin,
} from "@junctor/client/internal";
import type { Clock } from "@junctor/core/async";
import { AuthorizationError } from "@junctor/core/errors";
import type { Seal } from "@junctor/core/mcp";
import type { PageAnswer, PageRequest, Pages } from "@junctor/server/internal";
import { type Logins, toLoginTerms } from "../credentials/index.ts";
import { assertOwnForm, cookiesOf, VisitRefusal, toCookie } from "./browser.ts";
import { toDocument } from "./client-document.ts";
import { markup, toErrorPage, toFacts, toForm, toPage } from "./connect-html.ts";
import {
  callbackPath,
  connectPath,
  documentPath,
  identityPath,
  type Links,
  linkMs,
  type Ticket,
} from "./links.ts";
import type { PerCallerServer } from "./per-caller-server.ts";
import { proofOf, type Visitors } from "./visitor.ts";
import { digest, newSecret, type LinkVisits } from "./visits.ts";

interface ConnectPagesOptions {
  readonly links: Links;
  readonly visits: LinkVisits;
  readonly visitors: Visitors;
  readonly logins: Logins;
  readonly seal: Seal;
  readonly clock: Clock;
  readonly servers: () => readonly PerCallerServer[];
  readonly issuerNames: () => readonly string[];
  readonly onEvent: (server: string, event: CredentialEvent) => void;
}

const formBinding = "junctor: form of a link";
const over =
  "This link has expired, was used before, or was not issued by this gateway. Call the tool again to get a new one.";

/**
 * The pages on which a person connects an account of a caller. A link is no login: its visitor proves to be the caller, sees what will
 * happen and agrees, and only then is sent to the authorization server of the server.
 */
export function createConnectPages(options: ConnectPagesOptions): Pages {
  const { links, visits, visitors, logins, clock, seal, onEvent } = options;

  /** The ticket of a link that may be used now, and its server. */
  const opened = (token: string): { readonly ticket: Ticket; readonly server: PerCallerServer } => {
    const ticket = links.open(token);
    if (ticket === undefined) throw new VisitRefusal(410, over);
    return { ticket, server: serverOf(ticket) };
  };
  const serverOf = (ticket: Ticket): PerCallerServer => {
    const server = options.servers().find(({ config }) => config.name === ticket.server);
    const isSame = server?.config.launch.kind === "http" && server.config.launch.url === ticket.url;
    if (server === undefined || !isSame || !links.isKnown(ticket)) throw new VisitRefusal(410, over);
    return server;
  };
  const refused = (ticket: Ticket, reason: string, issuer?: string): void => {
    const { caller, server } = ticket;
    onEvent(server, {
      kind: "connect_refused",
      reason,
      ...(caller === undefined ? {} : { caller }),
      ...(issuer === undefined ? {} : { issuer }),
    });
  };
  const termsOf = ({ owner, server: name }: Ticket, { config }: PerCallerServer): LoginTerms => {
    const url = config.launch.kind === "http" ? config.launch.url : "";
    const { oauth } = config;
    return toLoginTerms({
      server: new URL(url),
      oauth,
      owner,
      logins,
      advice: "",
      clock,
      ...links.signInAt(name),
    });
  };

  /** The first page: it names the caller and the server, and asks for the proof. */
  const welcome = (token: string): PageAnswer => {
    const { ticket, server } = opened(token);
    const value = newSecret();
    const form = seal.seal({ cookie: digest(value), nonce: ticket.nonce }, formBinding, linkMs);
    const key = markup`<p><label>The key that this caller presents to the gateway<br><input type="password" name="key" autocomplete="off" required></label></p>`;
    const proof = proofOf(ticket);
    const word = proof === "issuer" ? `Sign in at ${new URL(ticket.issuer ?? "").host}` : "Continue";
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
        word,
        proof === "key" ? key : undefined,
      )}`,
      cookie: toCookie(ticket, links, value),
      hasForm: true,
    });
  };

  /** The second page, for a visitor that is the caller: what will happen, and the question whether it shall. */
  const consent = async (ticket: Ticket, token: string): Promise<PageAnswer> => {
    const server = serverOf(ticket);
    const terms = termsOf(ticket, server);
    const earlier = (await logins.store.read(credentialId(terms.server, ticket.owner))) as
      | Credential
      | undefined;
    const pending = await prepareLogin(terms, { challenge: ticket.challenge, earlier });
    const word = newSecret();
    const cookie = visits.begin({ ticket, token, step: { kind: "agreeing", pending, word } });
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
      cookie: toCookie(ticket, links, cookie),
      hasForm: true,
    });
  };

  const prove = async (token: string, request: PageRequest): Promise<PageAnswer> => {
    const { ticket } = opened(token);
    const sealed = seal.open(request.form.get("form") ?? "", formBinding);
    const { cookie, nonce } = (sealed.ok ? sealed.payload : {}) as { cookie?: string; nonce?: string };
    const isOwn = cookiesOf(request, links).some((value) => digest(value) === cookie);
    if (!isOwn || nonce !== ticket.nonce)
      throw new VisitRefusal(403, "Open the link again: this form is not of this browser.");
    if (proofOf(ticket) === "issuer") {
      const pending = await visitors.beginIdentity(ticket);
      const value = visits.begin({ ticket, token, step: { kind: "proving", pending } });
      return leave(pending, toCookie(ticket, links, value));
    }
    if (await visitors.isCaller(ticket, request)) return consent(ticket, token);
    return mistaken(ticket);
  };
  const mistaken = (ticket: Ticket): PageAnswer => {
    links.failed(ticket);
    refused(ticket, "the visitor is not the caller");
    return toErrorPage(403, "You are not the caller that this link was made for, so nothing was connected.");
  };

  const agree = (token: string, request: PageRequest): PageAnswer => {
    const { ticket } = opened(token);
    const [visit] = cookiesOf(request, links).flatMap(
      (cookie) =>
        visits.take("agreeing", cookie, ({ ticket: { nonce }, step }) => {
          return nonce === ticket.nonce && step.word === request.form.get("word");
        }) ?? [],
    );
    if (visit === undefined)
      throw new VisitRefusal(403, "Open the link again: this form is not of this browser.");
    if (!links.use(ticket)) throw new VisitRefusal(410, over);
    const { pending } = visit.step;
    const cookie = visits.begin({ ticket, token, step: { kind: "leaving", pending } });
    tellOf("connect_started", ticket, pending);
    return leave(pending, toCookie(ticket, links, cookie));
  };
  const tellOf = (
    kind: CredentialEvent["kind"],
    { caller, server }: Ticket,
    { as, client }: PendingLogin,
  ): void =>
    onEvent(server, {
      kind,
      issuer: as.issuer,
      clientId: client.clientId,
      ...(caller === undefined ? {} : { caller }),
    });

  /** The visit that an authorization server or issuer sent back; its state is good once, and in its own browser only. */
  const returned = <Kind extends "proving" | "leaving">(
    kind: Kind,
    request: PageRequest,
    redirectUrl: string,
  ): NonNullable<ReturnType<typeof visits.take<Kind>>> => {
    const state = request.query.get("state");
    const isOne = request.query.getAll("state").length === 1;
    const [visit] = cookiesOf(request, links).flatMap(
      (cookie) =>
        visits.take(kind, cookie, ({ step: { pending } }) => {
          return isOne && pending.state === state && pending.redirectUrl === redirectUrl;
        }) ?? [],
    );
    if (visit !== undefined) return visit;
    const stray = visits.drop(state);
    if (stray !== undefined) refused(stray, "the answer came to another browser or path");
    throw new VisitRefusal(
      403,
      "This answer belongs to no sign-in of this browser. Call the tool again to get a new link.",
    );
  };

  const identified = async (request: PageRequest, callback: URL): Promise<PageAnswer> => {
    const { ticket, token, step } = returned("proving", request, callback.origin + callback.pathname);
    serverOf(ticket);
    if (await visitors.isNamed(ticket, step.pending, callback)) return consent(ticket, token);
    return mistaken(ticket);
  };

  const finished = async (request: PageRequest, callback: URL): Promise<PageAnswer> => {
    const { ticket, step } = returned("leaving", request, callback.origin + callback.pathname);
    const { pending } = step;
    const terms = termsOf(ticket, serverOf(ticket));
    const { server: url, fetch, client } = terms;
    const { privateKey } = client;
    try {
      const credential = await finishLogin(pending, callback, { server: url, fetch, clock, privateKey });
      // The caller may have been revoked meanwhile, or the server removed.
      const server = serverOf(ticket);
      const id = credentialId(url, ticket.owner);
      await logins.store.alone(id, () => logins.store.write(id, credential));
      tellOf("connect_done", ticket, pending);
      await server.connected(ticket.owner);
    } catch (error) {
      refused(ticket, error instanceof AuthorizationError ? error.code : "it failed", pending.as.issuer);
      throw error;
    }
    return toPage({
      title: "Connected",
      body: markup`<p>Your account at ${ticket.server} is connected for ${ticket.caller ?? "this machine"}. You can close this page and go back to your program.</p>`,
      cookie: toCookie(ticket, links, ""),
    });
  };

  const serve = async (request: PageRequest): Promise<PageAnswer> => {
    const { method, path, query } = request;
    const { origin } = links;
    if (origin === undefined) throw new VisitRefusal(404, "There are no pages here.");
    if (path === documentPath) return toDocument(options);
    if (path.startsWith(connectPath)) {
      const token = path.slice(connectPath.length);
      if (method !== "POST") return welcome(token);
      assertOwnForm(request, origin);
      return request.form.get("step") === "agree" ? agree(token, request) : prove(token, request);
    }
    const callback = new URL(`${origin}${path}?${query.toString()}`);
    return path.startsWith(identityPath) ? identified(request, callback) : finished(request, callback);
  };
  return {
    methodsAt: (path) => {
      if (links.origin === undefined || options.servers().length === 0) return undefined;
      if (path.startsWith(connectPath)) return ["GET", "HEAD", "POST"];
      if (path === documentPath) return ["GET", "HEAD"];
      return path.startsWith(callbackPath) || path.startsWith(identityPath) ? ["GET"] : undefined;
    },
    listensAt: (url) => links.listensAt(url),
    serve: async (request) => {
      try {
        return await serve(request);
      } catch (error) {
        if (error instanceof VisitRefusal) return toErrorPage(error.status, error.message);
        if (error instanceof AuthorizationError) return toErrorPage(502, `${error.message}.`);
        throw error;
      }
    },
  };
}

function factsOf({ caller, server }: Ticket, { config: { launch } }: PerCallerServer): [string, string][] {
  const host = launch.kind === "http" ? new URL(launch.url).host : "";
  return [
    ["Caller", caller ?? "programs of this machine"],
    ["Server", `${server} (${host})`],
  ];
}

/** Sends the browser on. A redirect would be held to the rule that forms go to this origin only. */
function leave({ url }: PendingLogin, cookie: string): PageAnswer {
  const { host } = new URL(url);
  return toPage({
    title: `Go on at ${host}`,
    body: markup`<p><a href="${url}">Continue at ${host}</a></p>`,
    cookie,
    leadsTo: url,
  });
}
