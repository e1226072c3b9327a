import type { Authorizer } from "@junctor/client";
import { type CredentialEvent, credentialId } from "@junctor/client/internal";
import { andThen, type Awaitable, isPromise, type Clock } from "@junctor/core/async";
import type { ListPart } from "@junctor/core/fit";
import type { Tool } from "@junctor/core/mcp";
import type { Change, CallerInfo } from "@junctor/core/provider";
import { connectTool } from "../catalog/index.ts";
import type { ServerConfig } from "../config/index.ts";
import { createServerAuthorizer, type Logins } from "../credentials/index.ts";
import { alwaysUp, type GatewayServer } from "../servers/index.ts";
import { type Listed, nothingListed, type Upstream, type UpstreamEvent } from "../upstream/index.ts";
import { createAccountGuard } from "./account-guard.ts";
import { createAccountProvider } from "./account-provider.ts";
import { type Account, createAccount } from "./account.ts";
import { Accounts } from "./accounts.ts";
import type { Links } from "./links.ts";

interface PerCallerServerOptions {
  readonly config: ServerConfig;
  readonly links: Links;
  readonly logins: Logins;
  readonly clock: Clock;
  /** The name callers have for the tool that connects an account. */
  readonly connectName: () => string;
  /** Where the authorization server sends those who sign in, and the document that describes the gateway to it. */
  readonly signIn: () => { readonly redirectUrl?: string; readonly clientDocument?: string };
  readonly createUpstream: (
    authorizer: Authorizer,
    report: (upstream: Upstream, event: UpstreamEvent) => void,
  ) => Upstream;
  readonly onEvent: (event: CredentialEvent) => void;
  /** Called when lists of some callers changed. */
  readonly onChange: (change: Change) => void;
  /** Called with the lists that the server gave for a caller. */
  readonly onListed: (listed: Listed) => void;
}

/** A server at which each caller has an account of its own, with connections and lists that no other caller uses or sees. */
export interface PerCallerServer extends GatewayServer, AsyncDisposable {
  config: ServerConfig;
  readonly accounts: Accounts;
  /** The upstream of a caller, if it is in use. */
  upstreamOf(caller: CallerInfo): Upstream | undefined;
  sessionEnded(session: object): void;
  /** Lets the calls underway finish, but not for longer than this, and ends it. */
  retire(graceMs: number): Promise<void>;
  /** A person has connected the account of an owner: its credential is in the store. */
  connected(owner: string): Promise<void>;
}

type IsFor = (caller: CallerInfo) => boolean;

/** A server that lists nothing without an account is asked again after so long. */
const closedListsMs = 5 * 60_000;

export function createPerCallerServer(options: PerCallerServerOptions): PerCallerServer {
  const { links, logins, clock, connectName, signIn, createUpstream, onEvent, onChange } = options;
  const { name, launch } = options.config;
  const url = new URL(launch.kind === "http" ? launch.url : "");
  let { config } = options;
  /** Until when it is believed that the server lists nothing to callers without an account. */
  let listsClosedUntil = 0;
  const ofOwners = new WeakMap<IsFor, IsFor>();
  /** Whether a caller has this account, and uses the connection that a change was heard on. One function for each connection. */
  const ofAccount = (account: Account, isFor: IsFor): IsFor => {
    let isForOwner = ofOwners.get(isFor);
    if (isForOwner === undefined) {
      isForOwner = (caller) => accounts.find(caller) === account && isFor(caller);
      ofOwners.set(isFor, isForOwner);
    }
    return isForOwner;
  };
  const report = (account: Account) => (upstream: Upstream, event: UpstreamEvent) => {
    const { pooled } = event;
    if (account.upstream !== upstream) return;
    if (event.kind === "listed") {
      options.onListed(pooled.lists.listed);
      const isFor = ofAccount(account, pooled.isFor);
      for (const part of event.changed) onChange({ part, origin: name, isFor });
      return;
    }
    // Only the person can help, so the upstream is closed and does not try again.
    if (event.health.kind !== "down" || account.need === undefined) return;
    if (!account.wasConnected) listsClosedUntil = clock.now() + closedListsMs;
    setImmediate(() => void account.close(true));
  };
  const create = (owner: string, { caller, identity }: Pick<CallerInfo, "caller" | "identity">): Account => {
    const tell = (event: CredentialEvent): void =>
      onEvent({ ...event, ...(caller === undefined ? {} : { caller }) });
    return createAccount({
      owner,
      caller,
      identity,
      id: credentialId(url, owner),
      store: logins.store,
      clock,
      createAuthorizer: () =>
        createServerAuthorizer({
          server: url,
          oauth: config.oauth,
          owner,
          logins,
          advice: `call ${connectName()}`,
          clock,
          onEvent: tell,
          ...signIn(),
        }),
      createUpstream: (account, authorizer) => createUpstream(authorizer, report(account)),
    });
  };
  const accounts = new Accounts({ server: name, clock, create });
  const guard = createAccountGuard({ config: () => config, accounts, links, connectName });
  const provider = createAccountProvider({ accounts, guard });
  const standIn = toStandIn(name);

  /** The upstream whose lists a caller sees, opened if that can help. */
  const lookedUp = (caller: CallerInfo): Awaitable<Upstream | undefined> => {
    const account = accounts.of(caller);
    return andThen(account.isConnected(), (isConnected) => settle(account, isConnected));
  };
  const settle = (account: Account, isConnected: boolean): Upstream | undefined => {
    const mayHelp = isConnected || clock.now() >= listsClosedUntil;
    return mayHelp ? account.open() : account.upstream;
  };
  const askFirst: NonNullable<GatewayServer["askFirst"]> = async (context, round) => {
    const found = await guard.ask(context, round, (upstream) => upstream);
    if ("kind" in found) return found;
    await found.beginListing(context, "tools");
    return undefined;
  };
  return {
    get config() {
      return config;
    },
    set config(next) {
      config = next;
      for (const { upstream } of accounts.all)
        if (upstream !== undefined) upstream.config = { ...next, start: "lazy" };
    },
    accounts,
    provider,
    // The state of one account says nothing about the server for other callers.
    health: alwaysUp,
    isListed: true,
    // Lists of one caller do not show whether rules for all callers match something.
    isSettled: false,
    listedFor: (caller) => {
      const account = caller === undefined ? undefined : accounts.find(caller);
      return account?.upstream?.listedFor(caller) ?? account?.kept ?? unlisted;
    },
    standInFor: (caller) => {
      const account = accounts.find(caller);
      const isListed = account?.upstream?.isListed === true || account?.kept !== undefined;
      return isListed || account?.wasConnected === true ? undefined : standIn;
    },
    beginListing: (caller, part) => {
      const found = lookedUp(caller);
      return isPromise(found)
        ? found.then((upstream) => upstream?.beginListing(caller, part))
        : found?.beginListing(caller, part);
    },
    untilListed: (part: ListPart, context) =>
      Promise.resolve(lookedUp(context)).then((upstream) => upstream?.untilListed(part, context)),
    unavailable: () =>
      new Error(`${name} lists nothing before an account is connected: call ${connectName()}`),
    // Without a prefix, any name might have been its own.
    ...(config.prefix === false ? {} : { askFirst }),
    upstreamOf: (caller) => accounts.find(caller)?.upstream,
    sessionEnded: (session) => {
      for (const { upstream } of accounts.all) upstream?.pool.sessionEnded(session);
    },
    retire: async (graceMs) => {
      await Promise.all(accounts.all.flatMap(({ upstream }) => upstream?.retire(graceMs) ?? []));
      await accounts[Symbol.asyncDispose]();
    },
    connected: async (owner) => {
      for (const account of accounts.all) {
        if (account.options.owner !== owner) continue;
        // It may be another account than before, so the old upstream and its lists are dropped.
        if ((account.upstream?.inFlight ?? 0) === 0) await account.close();
        account.connected();
        const upstream = account.open();
        void upstream.start();
        for (const { lists } of upstream.pool.all) void lists.refreshSince(allKinds, clock.now());
      }
    },
    [Symbol.asyncDispose]: () => accounts[Symbol.asyncDispose](),
  };
}

const allKinds = ["tools", "resources", "prompts"] as const;

const unlisted: Listed = { ...nothingListed, isConfirmed: true };

/** The one tool of a server that lists nothing to a caller so far. */
function toStandIn(server: string): readonly Tool[] {
  const description =
    `Connects your own account at ${server} to this gateway, on a page that is opened in a browser. ` +
    "The tools of the server are listed once that is done.";
  const inputSchema = { type: "object", properties: {}, additionalProperties: false };
  const annotations = { readOnlyHint: false, destructiveHint: false, openWorldHint: true };
  return Object.freeze([
    { name: connectTool, title: `Connect ${server}`, description, inputSchema, annotations },
  ]);
}
