import { AuthorizationError, type BearerChallenge, ToolError, UpstreamError } from "@junctor/core/errors";
import type { CallContext, InputRequired, Round } from "@junctor/core/provider";
import type { ServerConfig } from "../config/index.ts";
import type { Upstream } from "../upstream/index.ts";
import type { Account } from "./account.ts";
import type { Accounts } from "./accounts.ts";
import {
  askToConnect,
  assertComesBack,
  type ConnectWish,
  isConnectState,
  tellToConnect,
} from "./connect-ask.ts";
import type { Links } from "./links.ts";

interface AccountGuardOptions {
  readonly config: () => ServerConfig;
  readonly accounts: Accounts;
  readonly links: Links;
  /** The name callers have for the tool that connects an account. */
  readonly connectName: () => string;
}

/** How long a call that came back waits for the person to connect the account. */
const patienceMs = 30_000;
/** How often one call may ask for the account: a server that refuses each would have its person asked without end. */
const maxAttempts = 3;

/** Work on the upstream of a caller whose account is connected. */
type OwnWork<T> = (upstream: Upstream, round: Round | undefined) => T | Promise<T>;

/** Why a caller is asked for its account. */
interface Lack {
  readonly challenge?: BearerChallenge | undefined;
  readonly isMore?: boolean;
  readonly attempt: number;
}

/** Lets requests to one server through when their callers have connected an account, and has those connect that have not. */
export interface AccountGuard {
  /** Work that may ask its caller something. Nothing is sent before the account is connected. */
  ask<T>(context: CallContext, round: Round | undefined, work: OwnWork<T>): Promise<T | InputRequired>;
  /** Work that cannot ask. Rejects with an `UpstreamError` while the account is not connected. */
  use<T>(context: CallContext, work: (upstream: Upstream) => T | Promise<T>): Promise<T>;
  /** The tool that connects an account; gives the text of its result. */
  connect(context: CallContext, round: Round | undefined): Promise<string | InputRequired>;
}

export function createAccountGuard(options: AccountGuardOptions): AccountGuard {
  const { config, accounts, links, connectName } = options;

  const prepareAsk = async (account: Account, lack: Lack): Promise<ConnectWish> => {
    const { name: server, launch } = config();
    const { owner, caller, identity } = account.options;
    const url = launch.kind === "http" ? launch.url : "";
    const { challenge, isMore = false, attempt } = lack;
    const link = links.create({ owner, caller, identity, server, url, challenge });
    if (link === undefined) throw noPage(server, caller, links);
    return { server, link, isMore, attempt, before: await account.credentialName() };
  };
  /** Asks by a page that the client shows, or in words. */
  const askForAccount = async (
    account: Account,
    context: CallContext,
    lack: Lack,
  ): Promise<InputRequired | string> => {
    if (lack.attempt >= maxAttempts) {
      const text = `${config().name} still refuses after your account was connected ${maxAttempts} times.`;
      throw new ToolError(text, { code: "tool.refused" });
    }
    const prepared = await prepareAsk(account, lack);
    return askToConnect(prepared, context, account) ?? tellToConnect(prepared);
  };
  /** The attempt of a call whose account is connected; otherwise the question or the text for its caller. */
  const requireAccount = async (
    account: Account,
    context: CallContext,
    round: Round | undefined,
  ): Promise<number | InputRequired | string> => {
    const state = round?.state;
    if (round !== undefined && isConnectState(state)) {
      const { attempt, before } = state;
      assertComesBack(round, state, config().name);
      if (await account.untilConnected(before, patienceMs, context.signal)) return attempt;
      return askForAccount(account, context, { attempt, challenge: account.need?.challenge });
    }
    if (await account.isConnected()) return 0;
    return askForAccount(account, context, { attempt: 0, challenge: account.need?.challenge });
  };

  return {
    ask: async (context, round, work) => {
      const account = accounts.of(context);
      const attempt = await requireAccount(account, context, round);
      if (typeof attempt !== "number") return orRefuse(attempt);
      const rest = isConnectState(round?.state) ? undefined : round;
      try {
        return await work(account.open(), rest);
      } catch (error) {
        const denied = deniedBy(error);
        const isMore = denied?.code === "auth.insufficient_scope";
        if (!isNotSent(error) || (!isMore && account.need === undefined)) throw error;
        const challenge = isMore ? denied?.challenge : account.need?.challenge;
        return orRefuse(await askForAccount(account, context, { attempt: attempt + 1, isMore, challenge }));
      }
    },
    use: async (context, work) => {
      const account = accounts.of(context);
      if (await account.isConnected()) return work(account.open());
      const { name: server } = config();
      const text = `${server} works with your own account, which is not connected: call ${connectName()}.`;
      throw new UpstreamError("unavailable", text, { server, delivery: "not_sent" });
    },
    connect: async (context, round) => {
      const account = accounts.of(context);
      const { name } = config();
      const attempt = await requireAccount(account, context, round);
      if (typeof attempt !== "number") return attempt;
      await account.open().beginListing(context, "tools");
      return `Your account at ${name} is connected. Its tools are listed now: list the tools again.`;
    },
  };
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
  const advice = caller === undefined && origin === undefined ? `; junctor login ${server}` : "";
  const text = `${server} works with an account of each caller, and none can be connected: ${why}${advice}.`;
  return new UpstreamError("unavailable", text, { server, delivery: "not_sent" });
}
