import { randomUUID } from "node:crypto";
import { andThen } from "@junctor/core/async";
import {
  AuthorizationError,
  type BearerChallenge,
  RpcError,
  ToolError,
  UpstreamError,
} from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import { elicitUrl, isAtLeast, isLegacyRevision, methods, urlElicitationRequired } from "@junctor/core/mcp";
import {
  type CallContext,
  type CallerInfo,
  emptyListing,
  type InputRequired,
  mapListings,
  type Outcome,
  type Provider,
  type Round,
} from "@junctor/core/provider";
import { connectTool } from "../catalog/index.ts";
import type { ServerConfig } from "../config/index.ts";
import { junctor } from "../invocation/index.ts";
import { offersAll, type Upstream } from "../upstream/index.ts";
import type { Account, Accounts } from "./account.ts";
import type { Links } from "./links.ts";

/** How long a call that came back waits for the person to connect the account. */
const patienceMs = 30_000;
/** How often one call may ask for the account: otherwise a server that refuses each account would have the person asked forever. */
const maxAttempts = 3;

/** Work on the upstream of a caller whose account is connected. */
type OwnWork<T> = (upstream: Upstream, round: Round | undefined) => T | Promise<T>;

/** Why a caller is asked for its account. */
interface Need {
  readonly challenge?: BearerChallenge | undefined;
  readonly isMore?: boolean;
  readonly attempt: number;
}

interface AccountGuardOptions {
  readonly config: () => ServerConfig;
  readonly accounts: Accounts;
  readonly links: Links;
  /** The name callers have for the tool that connects an account. */
  readonly connectName: () => string;
}

/** Lets requests to one server through when the caller has connected an account; otherwise asks it to connect one. */
export class AccountGuard {
  readonly #options: AccountGuardOptions;

  constructor(options: AccountGuardOptions) {
    this.#options = options;
  }

  /** Work that may ask its caller something. Nothing is sent before the account is connected. */
  async ask<T>(context: CallContext, round: Round | undefined, work: OwnWork<T>): Promise<T | InputRequired> {
    const account = this.#options.accounts.of(context);
    const attempt = await this.#requireAccount(account, context, round);
    if (typeof attempt !== "number") return orRefuse(attempt);
    const rest = isConnectState(round?.state) ? undefined : round;
    try {
      return await work(account.open(), rest);
    } catch (error) {
      const denied = deniedBy(error);
      const isMore = denied?.code === "auth.insufficient_scope";
      if (!isNotSent(error) || (!isMore && account.need === undefined)) throw error;
      const challenge = isMore ? denied?.challenge : account.need?.challenge;
      return orRefuse(
        await this.#askForAccount(account, context, { attempt: attempt + 1, isMore, challenge }),
      );
    }
  }

  /** Work that cannot ask. Rejects with an `UpstreamError` while the account is not connected. */
  async use<T>(context: CallContext, work: (upstream: Upstream) => T | Promise<T>): Promise<T> {
    const { accounts, config, connectName } = this.#options;
    const account = accounts.of(context);
    if (await account.isConnected()) return work(account.open());
    const { name: server } = config();
    const text = `${server} works with your own account, which is not connected: call ${connectName()}.`;
    throw new UpstreamError("unavailable", text, { server, delivery: "not_sent" });
  }

  /** The tool that connects an account; gives the text of its result. */
  async connect(context: CallContext, round: Round | undefined): Promise<string | InputRequired> {
    const { accounts, config } = this.#options;
    const account = accounts.of(context);
    const { name } = config();
    const attempt = await this.#requireAccount(account, context, round);
    if (typeof attempt !== "number") return attempt;
    await account.open().beginListing(context, "tools");
    return `Your account at ${name} is connected. Its tools are listed now: list the tools again.`;
  }

  /** The attempt of a call whose account is connected; otherwise the question or the text for its caller. */
  async #requireAccount(
    account: Account,
    context: CallContext,
    round: Round | undefined,
  ): Promise<number | InputRequired | string> {
    const state = round?.state;
    if (round !== undefined && isConnectState(state)) {
      const { attempt, before } = state;
      assertComesBack(round, state, this.#options.config().name);
      if (await account.untilConnected(before, patienceMs, context.signal)) return attempt;
      return this.#askForAccount(account, context, { attempt, challenge: account.need?.challenge });
    }
    if (await account.isConnected()) return 0;
    return this.#askForAccount(account, context, { attempt: 0, challenge: account.need?.challenge });
  }

  /** Asks by a page that the client shows, or in words. */
  async #askForAccount(account: Account, context: CallContext, need: Need): Promise<InputRequired | string> {
    if (need.attempt >= maxAttempts) {
      const { name } = this.#options.config();
      const text = `${name} still refuses after your account was connected ${maxAttempts} times.`;
      throw new ToolError(text, { code: "tool.refused" });
    }
    const prepared = await this.#prepareAsk(account, need);
    return askToConnect(prepared, context, account) ?? tellToConnect(prepared);
  }

  async #prepareAsk(account: Account, need: Need): Promise<ConnectRequest> {
    const { config, links } = this.#options;
    const { name: server, launch } = config();
    const { owner, caller, identity } = account.options;
    const url = launch.kind === "http" ? launch.url : "";
    const { challenge, isMore = false, attempt } = need;
    const link = links.create({ owner, caller, identity, server, url, challenge });
    if (link === undefined) throw noPage(server, caller, links);
    return { server, link, isMore, attempt, before: await account.credentialName() };
  }
}

/** To a model, a call that was not made has failed. */
function orRefuse(asked: InputRequired | string): InputRequired {
  if (typeof asked === "string") throw new ToolError(asked, { code: "tool.refused" });
  return asked;
}

function deniedBy(error: unknown): AuthorizationError | undefined {
  const cause = error instanceof UpstreamError ? error.cause : error;
  return cause instanceof AuthorizationError ? cause : undefined;
}

function isNotSent(error: unknown): boolean {
  return (
    (error instanceof UpstreamError || error instanceof AuthorizationError) && error.delivery === "not_sent"
  );
}

/** Why there is no page to connect an account at. */
function noPage(server: string, caller: string | undefined, { origin }: Links): UpstreamError {
  const why =
    origin === undefined
      ? `the gateway does not know its own address: its operator sets "http": { "publicUrl": … }`
      : `its callers have no names here: its operator gives them keys, or names an issuer`;
  const advice = caller === undefined && origin === undefined ? `; ${junctor("login")} ${server}` : "";
  const text = `${server} works with an account of each caller, and none can be connected: ${why}${advice}.`;
  return new UpstreamError("unavailable", text, { server, delivery: "not_sent" });
}

/** The server learns which caller a list is for, so no list may be shared. */
const hints = { ttlMs: 0, cacheScope: "private" } as const;

/** A server as a provider in which each caller reaches the upstream of its own account and no other. */
export function createAccountProvider(accounts: Accounts, guard: AccountGuard): Provider {
  const upstreamOf = (caller: CallerInfo): Upstream | undefined => accounts.find(caller)?.upstream;
  const unkept = mapListings<object>((listing) => listing.with(listing.items, { hints }));
  return {
    // A list is of all servers, so a caller without an account sees none of this one.
    list: (part, context) =>
      andThen(upstreamOf(context)?.list(part, context) ?? emptyListing, (list) => unkept(list) as never),
    call: (operation, context) => {
      const { method, name, round: original } = operation;
      if (method === "tools/call" && name === connectTool)
        return guard
          .connect(context, original)
          .then((reply) => (typeof reply === "string" ? toText(reply) : reply));
      if (methods.get(method)?.asks !== true)
        return guard.use(context, (upstream) => upstream.call(operation, context));
      return guard.ask<Outcome>(context, original, (upstream, round) =>
        upstream.call(round === original ? operation : { ...operation, round }, context),
      );
    },
    watch: (target, context, listener) =>
      guard.use(context, (upstream) => upstream.watch(target, context, listener)),
    offers: () => offersAll,
  };
}

function toText(text: string): Outcome {
  return { kind: "complete", result: RawJson.fromValue({ content: [{ type: "text", text }] }) };
}

/** The sealed state that a caller carries while its user connects an account. */
interface ConnectState {
  /** The server. */
  readonly connect: string;
  /** How often the server refused an account that was connected for this call. */
  readonly attempt: number;
  /** Names the credential that was there before, if there was one. */
  readonly before?: string;
}

/** What the user of a caller is asked to do. */
interface ConnectRequest {
  readonly server: string;
  /** The page for it. */
  readonly link: string;
  /** Whether there is an account already, which is not enough. */
  readonly isMore: boolean;
  readonly attempt: number;
  readonly before: string | undefined;
}

/** Calls whose callers were asked to connect, by the part of their context that all copies of it share. */
const asked = new WeakSet<object>();

/** Whether the caller of a call was asked to connect an account instead of being served. */
export function wasAskedToConnect(context: CallContext): boolean {
  return asked.has(context.cancellation ?? context);
}

/** Names the question among those of a call. */
const askKey = "connect";

/**
 * Asks for an account by the means of the caller's client: a modern one is given a page to show and comes back, one of 2025-11-25 gets
 * an error that names the page. Undefined for clients that show no pages: {@link tellToConnect} makes a text for them.
 */
function askToConnect(
  { server, link, isMore, attempt, before }: ConnectRequest,
  context: CallContext,
  account: Account,
): InputRequired | undefined {
  const { revision, capabilities } = context;
  asked.add(context.cancellation ?? context);
  if (capabilities.elicitation?.url === undefined) return undefined;
  const message = isMore
    ? `${server} wants more access to your account. Open the page to give it.`
    : `${server} works with your own account. Open the page to connect it.`;
  if (!isLegacyRevision(revision)) {
    const state: ConnectState = { connect: server, attempt, ...(before === undefined ? {} : { before }) };
    const asks = { [askKey]: elicitUrl(message, link) };
    return { kind: "input_required", asks, state, keepsAnswers: false };
  }
  if (!isAtLeast(revision, "2025-11-25")) return undefined;
  const elicitationId = randomUUID();
  const { visited } = context;
  if (visited !== undefined) account.onConnected(() => visited(elicitationId));
  const data = { elicitations: [{ mode: "url", elicitationId, url: link, message }] };
  throw new RpcError("rpc.other", message, { rpcCode: urlElicitationRequired, data });
}

/** The same in words, for a model that passes them on. */
function tellToConnect({ server, link, isMore }: ConnectRequest): string {
  const why = isMore
    ? `${server} wants more access to your account`
    : `${server} works with your own account`;
  return (
    `${why}, and nothing was sent to it. Open this link in a browser to connect the account, then call again: ${link} ` +
    "(It is good for 10 minutes, and for you only: show it to the user, and to no one else.)"
  );
}

function isConnectState(state: unknown): state is ConnectState {
  return typeof state === "object" && state !== null && typeof (state as ConnectState)[askKey] === "string";
}

/** Checks that the state is for this server, and that the user did not refuse. */
function assertComesBack({ answers }: Round, state: ConnectState, server: string): void {
  if (state.connect !== server)
    throw new RpcError("rpc.invalid_params", "Invalid params: requestState belongs to another server");
  const answer = answers[askKey];
  const action = answer?.kind === "object" ? answer.at("action")?.value : undefined;
  if (action === "decline" || action === "cancel")
    throw new ToolError(`${server} works with your own account, and the user does not want to connect it.`, {
      code: "tool.refused",
    });
}
