import type { Authorizer } from "@junctor/client";
import { type CredentialEvent, credentialId } from "@junctor/client/internal";
import { andThen, type Awaitable, type Clock, isPromise } from "@junctor/core/async";
import type { Catalog, Naming } from "@junctor/core/compose";
import type { ListPart } from "@junctor/core/fit";
import type { Tool } from "@junctor/core/mcp";
import type { CallContext, CallerInfo, Change, Provider } from "@junctor/core/provider";
import { connectTool, toConnectName } from "../catalog/index.ts";
import type { ServerConfig } from "../config/index.ts";
import { createServerAuthorizer, type Logins } from "../credentials/index.ts";
import type { Pins } from "../lock/index.ts";
import type { GatewayLog } from "../log/index.ts";
import { alwaysUp, type GatewayServer, type UpstreamFactory } from "../servers/index.ts";
import {
  type Health,
  type Listed,
  logCredential,
  nothingListed,
  type Upstream,
  type UpstreamEvent,
} from "../upstream/index.ts";
import { Account, Accounts } from "./account.ts";
import type { Links } from "./links.ts";
import { AccountGuard, createAccountProvider } from "./require-account.ts";

interface PerCallerServersOptions {
  readonly catalog: Catalog;
  readonly log: GatewayLog;
  readonly clock: Clock;
  readonly logins: Logins;
  readonly pins: () => Pins | undefined;
  readonly factory: UpstreamFactory;
  /** Undefined where callers have no accounts of their own, whatever the config says. */
  readonly links: Links | undefined;
  readonly onChange: (change: Change) => void;
  readonly onCredential?: ((server: string, event: CredentialEvent) => void) | undefined;
}

/** How long the first lists of a caller are waited for. */
const firstListMs = (): number => 5000;
/** How long calls of a server that was removed or changed may take to finish. */
const retireMs = 10_000;

/** The servers of a gateway at which each caller has an account of its own. */
export class PerCallerServers implements AsyncDisposable {
  readonly #options: PerCallerServersOptions;
  readonly #servers = new Map<string, PerCallerServer>();
  readonly #closing = new Set<Promise<void>>();
  #naming: Naming = { separator: "__", maxLength: 64 };

  constructor(options: PerCallerServersOptions) {
    this.#options = options;
  }

  get all(): readonly PerCallerServer[] {
    return [...this.#servers.values()];
  }

  /** Whether a server of the config is one of these. */
  has({ credentials }: ServerConfig): boolean {
    return credentials === "perCaller" && this.#options.links !== undefined;
  }

  get(name: string): PerCallerServer | undefined {
    return this.#servers.get(name);
  }

  /** Replaces the set of servers. A server for which `runsTheSame` is false is made again, and its lists are dropped. */
  update(
    configured: readonly ServerConfig[],
    naming: Naming,
    runsTheSame: (before: ServerConfig, after: ServerConfig) => boolean,
  ): void {
    this.#naming = naming;
    const wanted = new Map(configured.filter((server) => this.has(server)).map((each) => [each.name, each]));
    for (const [name, server] of this.#servers) {
      const next = wanted.get(name);
      if (next !== undefined && runsTheSame(server.config, next)) server.config = next;
      else this.#close(server, retireMs);
    }
    for (const [name, config] of wanted)
      if (!this.#servers.has(name)) this.#servers.set(name, this.#create(config));
  }

  /** The upstreams that a caller uses. */
  upstreamsOf(caller: CallerInfo): readonly Upstream[] {
    return this.all.flatMap((server) => server.upstreamOf(caller) ?? []);
  }

  /** A caller was revoked: its accounts are closed. */
  revoke(caller: string | undefined): void {
    for (const { accounts } of this.all) accounts.revoke(caller);
  }

  sessionEnded(session: object): void {
    for (const server of this.all) server.sessionEnded(session);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.all) this.#close(server);
    await Promise.all(this.#closing);
  }

  #close(server: PerCallerServer, graceMs = 0): void {
    this.#servers.delete(server.config.name);
    const closed = server.retire(graceMs).finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }

  #create(config: ServerConfig): PerCallerServer {
    const { catalog, log, clock, logins, pins, factory, links, onChange, onCredential } = this.#options;
    const { name } = config;
    if (links === undefined) throw new TypeError(`${name}: callers have no accounts here`);
    return new PerCallerServer({
      config,
      links,
      logins,
      clock,
      connectName: () => toConnectName(config, this.#naming),
      signIn: () => links.signInAt(name),
      createUpstream: (authorizer, report) =>
        factory.create({
          config: { ...(this.#servers.get(name)?.config ?? config), start: "lazy" },
          firstListMs,
          predecessor: undefined,
          authorizer,
          report,
        }),
      onEvent: (event) => {
        logCredential(log, name, event);
        onCredential?.(name, event);
      },
      onChange,
      onListed: (listed) => {
        catalog.outdated();
        pins()?.logUnapproved(name, listed, undefined);
      },
    });
  }
}

interface PerCallerServerOptions {
  readonly config: ServerConfig;
  readonly links: Links;
  readonly logins: Logins;
  readonly clock: Clock;
  /** The name callers have for the tool that connects an account. */
  readonly connectName: () => string;
  /** Where the authorization server redirects to, and the document that describes the gateway to it. */
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

type IsFor = (caller: CallerInfo) => boolean;

/** A server that lists nothing without an account is asked again after this long. */
const closedListsMs = 5 * 60_000;

/** A server at which each caller has an account of its own, with connections and lists that no other caller uses or sees. */
export class PerCallerServer implements GatewayServer, AsyncDisposable {
  #config: ServerConfig;
  readonly accounts: Accounts;
  readonly provider: Provider;
  /** The state of one account says nothing about the server for other callers. */
  readonly health: Health = alwaysUp;
  readonly isListed = true;
  /** Lists of one caller do not show whether rules for all callers match something. */
  readonly isSettled = false;
  readonly askFirst?: NonNullable<GatewayServer["askFirst"]>;
  readonly #options: PerCallerServerOptions;
  readonly #standIn: readonly Tool[];
  /** Until when the server is taken to list nothing to callers without an account. */
  #listsClosedUntil = 0;
  readonly #ofOwners = new WeakMap<IsFor, IsFor>();

  constructor(options: PerCallerServerOptions) {
    const { config, links, clock, connectName } = options;
    this.#config = config;
    this.#options = options;
    this.#standIn = toStandIn(config.name);
    this.accounts = new Accounts({
      server: config.name,
      clock,
      create: (owner, caller) => this.#createAccount(owner, caller),
    });
    const guard = new AccountGuard({
      config: () => this.config,
      accounts: this.accounts,
      links,
      connectName,
    });
    this.provider = createAccountProvider(this.accounts, guard);
    // Without a prefix, any name might be one of this server's.
    if (config.prefix === false) return;
    this.askFirst = async (context, round) => {
      const found = await guard.ask(context, round, (upstream) => upstream);
      if ("kind" in found) return found;
      await found.beginListing(context, "tools");
      return undefined;
    };
  }

  get config(): ServerConfig {
    return this.#config;
  }

  /** Settings that need no new process may be replaced while the server runs. */
  set config(next: ServerConfig) {
    this.#config = next;
    for (const { upstream } of this.accounts.all)
      if (upstream !== undefined) upstream.config = { ...next, start: "lazy" };
  }

  listedFor(caller?: CallerInfo): Listed {
    const account = caller === undefined ? undefined : this.accounts.find(caller);
    return account?.upstream?.listedFor(caller) ?? account?.lastListed ?? unlisted;
  }

  standInFor(caller: CallerInfo): readonly Tool[] | undefined {
    const account = this.accounts.find(caller);
    const isListed = account?.upstream?.isListed === true || account?.lastListed !== undefined;
    return isListed || account?.wasConnected === true ? undefined : this.#standIn;
  }

  beginListing(caller: CallerInfo, part: ListPart): Promise<unknown> | undefined {
    const found = this.#upstreamForLists(caller);
    return isPromise(found)
      ? found.then((upstream) => upstream?.beginListing(caller, part))
      : found?.beginListing(caller, part);
  }

  untilListed(part: ListPart, context: CallContext): Promise<unknown> {
    return Promise.resolve(this.#upstreamForLists(context)).then((upstream) =>
      upstream?.untilListed(part, context),
    );
  }

  unavailable(): Error {
    const { connectName } = this.#options;
    return new Error(
      `${this.config.name} lists nothing before an account is connected: call ${connectName()}`,
    );
  }

  /** The upstream of a caller, if it is in use. */
  upstreamOf(caller: CallerInfo): Upstream | undefined {
    return this.accounts.find(caller)?.upstream;
  }

  sessionEnded(session: object): void {
    for (const { upstream } of this.accounts.all) upstream?.pool.sessionEnded(session);
  }

  /** Gives the calls underway this long to finish, then ends it. */
  async retire(graceMs: number): Promise<void> {
    await Promise.all(this.accounts.all.flatMap(({ upstream }) => upstream?.retire(graceMs) ?? []));
    await this.accounts[Symbol.asyncDispose]();
  }

  /** A person has connected the account of an owner: its credential is in the store. */
  async noteConnected(owner: string): Promise<void> {
    for (const account of this.accounts.all) {
      if (account.options.owner !== owner) continue;
      // It may be another account than before, so the old upstream and its lists are dropped.
      if ((account.upstream?.inFlight ?? 0) === 0) await account.close();
      account.noteConnected();
      const upstream = account.open();
      void upstream.start();
      for (const { lists } of upstream.pool.all) void lists.refreshSince(allKinds, this.#options.clock.now());
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.accounts[Symbol.asyncDispose]();
  }

  /** The upstream whose lists a caller sees, opened if that can help. */
  #upstreamForLists(caller: CallerInfo): Awaitable<Upstream | undefined> {
    const account = this.accounts.of(caller);
    return andThen(account.isConnected(), (isConnected) => {
      const mayHelp = isConnected || this.#options.clock.now() >= this.#listsClosedUntil;
      return mayHelp ? account.open() : account.upstream;
    });
  }

  #createAccount(owner: string, { caller, identity }: Pick<CallerInfo, "caller" | "identity">): Account {
    const { logins, clock, connectName, signIn, createUpstream, onEvent } = this.#options;
    const { launch } = this.config;
    const url = new URL(launch.kind === "http" ? launch.url : "");
    return new Account({
      owner,
      caller,
      identity,
      id: credentialId(url, owner),
      store: logins.store,
      clock,
      createAuthorizer: () =>
        createServerAuthorizer({
          server: url,
          oauth: this.config.oauth,
          owner,
          logins,
          advice: `call ${connectName()}`,
          clock,
          onEvent: (event) => onEvent({ ...event, ...(caller === undefined ? {} : { caller }) }),
          ...signIn(),
        }),
      createUpstream: (account, authorizer) =>
        createUpstream(authorizer, (upstream, event) => this.#report(account, upstream, event)),
    });
  }

  #report(account: Account, upstream: Upstream, event: UpstreamEvent): void {
    const { onListed, onChange, clock } = this.#options;
    const { pooled } = event;
    if (account.upstream !== upstream) return;
    if (event.kind === "listed") {
      onListed(pooled.lists.listed);
      const isFor = this.#ofOwner(account, pooled.isFor);
      for (const part of event.changed) onChange({ part, origin: this.config.name, isFor });
      return;
    }
    // Only the person can help, so the upstream is closed and does not try again.
    if (event.health.kind !== "down" || account.need === undefined) return;
    if (!account.wasConnected) this.#listsClosedUntil = clock.now() + closedListsMs;
    setImmediate(() => void account.close(true));
  }

  /** Whether a caller has this account, and uses the connection that reported a change. One function for each connection. */
  #ofOwner(account: Account, isFor: IsFor): IsFor {
    let isForOwner = this.#ofOwners.get(isFor);
    if (isForOwner === undefined) {
      isForOwner = (caller) => this.accounts.find(caller) === account && isFor(caller);
      this.#ofOwners.set(isFor, isForOwner);
    }
    return isForOwner;
  }
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
