import { timedOut, waitFor } from "@junctor/core/async";
import { NotFoundError, RpcError, rpcCodes } from "@junctor/core/errors";
import type { Skill } from "@junctor/core/mcp";
import type { CallContext, OldProvider } from "@junctor/core/provider";
import { lacks } from "./held-task.ts";
import type { Loan } from "./pool.ts";
import type { PooledConnection } from "./pooled-connection.ts";
import type { Requests, RequestsOptions } from "./requests.ts";
import type { TaskConnections } from "./task-connections.ts";
import type { UpstreamLists } from "./upstream-lists.ts";
import type { UseTask } from "./upstream-tasks.ts";

interface UpstreamFacetsOptions extends Pick<
  RequestsOptions,
  "server" | "clock" | "pool" | "toFailure" | "onEnded"
> {
  readonly lists: UpstreamLists;
  readonly requests: Requests;
  readonly taskConnections: TaskConnections;
  /** Whether callers that cannot watch on their own connection may watch on that for everyone. */
  readonly watchesForAll: boolean;
}

/** The resources, prompts, completion and skills of a server behind the gateway, and the way to its tasks. */
export function createUpstreamFacets(options: UpstreamFacetsOptions): {
  readonly [Facet in "resources" | "prompts" | "completion" | "skills" | "methods"]: NonNullable<
    OldProvider[Facet]
  >;
} & { readonly useTask: UseTask } {
  const { server, clock, pool, lists, requests, toFailure, onEnded, taskConnections } = options;

  /** Uses the connection of a caller's lists. It stays lent until `release` is called, or until the use fails. */
  const lent = async <T>(
    context: CallContext,
    use: (loan: Loan, release: () => void) => Promise<T>,
  ): Promise<T> => {
    const loan = await pool.lendListed(context, context.signal);
    const release = (): void => {
      loan.release();
      onEnded();
    };
    try {
      return await use(loan, release);
    } catch (error) {
      release();
      throw toFailure(error, loan.pooled.connection);
    }
  };

  /** One request for skills, on the connection of the caller's lists. */
  const ask = <T>(context: CallContext, work: (loan: Loan) => Promise<T>): Promise<T> =>
    lent(context, async (loan, release) => {
      const answer = await work(loan);
      release();
      return answer;
    });
  /** Of the connection for everyone: those of another connection are for its callers alone. */
  let lastSkills: readonly Skill[] | undefined;
  /** By connection: until when its skills are not waited for, because they were late. 0 for a connection that listed them. */
  const lateUntil = new WeakMap<PooledConnection, number>();
  const list = async ({ client, pooled }: Loan, context: CallContext): Promise<readonly Skill[]> => {
    const listed = await client.skills.listSkills(context);
    if (pooled === pool.everyone) lastSkills = listed;
    if (!lateUntil.has(pooled)) lateUntil.set(pooled, 0);
    return listed;
  };

  return {
    methods: {
      has: () => true,
      serve: async (method, params, context) => {
        const outcome = await requests.make(undefined, context, async (client, served) => {
          if (client.methods === undefined) throw lacks(server, method);
          return { kind: "complete", result: await client.methods.serve(method, params, served) };
        });
        if (outcome.kind === "complete") return outcome.result;
        throw lacks(server, method);
      },
    },
    useTask: async (ref, context, use) => {
      const kept = taskConnections.find(ref);
      if (kept?.client === undefined)
        return lent(context, async ({ client }, release) => {
          const used = await use(client);
          release();
          return used;
        });
      try {
        return await use(kept.client);
      } catch (error) {
        throw toFailure(error, kept.connection);
      }
    },
    skills: {
      // A server whose skills were never listed is waited for. One that is down or late has the skills that it listed last.
      listSkills: async (context) => {
        const connection = pool.find(context);
        const until = connection && lateUntil.get(connection);
        const isAway = pool.everyone.client === undefined || clock.now() < (until ?? 0);
        if (isAway && lastSkills !== undefined) return lastSkills;
        const listed = ask(context, (loan) => list(loan, context)).catch(() => undefined);
        const found = await waitFor(listed, { ms: until === undefined ? maxFirstMs : maxAgainMs, clock });
        const used = pool.find(context);
        if (found === timedOut && used !== undefined) lateUntil.set(used, clock.now() + lateMs);
        context.signal.throwIfAborted();
        lastSkills ??= [];
        return found === undefined || found === timedOut ? lastSkills : found;
      },
      getSkill: (uri, context) => ask(context, ({ client }) => client.skills.getSkill(uri, context)),
      readDirectory: (uri, context) =>
        ask(context, ({ client }) => client.skills.readDirectory(uri, context)),
    },
    resources: {
      listResources: async (context) => lists.list(context, "resources"),
      listTemplates: async (context) => lists.list(context, "templates"),
      readResource: async (request, context) => requests.read(request, context),
      // A resource is watched on the caller's connection, once for all its callers.
      watch: (uri, context) =>
        lent(context, async (loan, release) => {
          const stop = await watchOn(loan, uri, context, options);
          return () => {
            stop();
            release();
          };
        }),
    },
    prompts: {
      listPrompts: async (context) => lists.list(context, "prompts"),
      getPrompt: async (request, context) => requests.getPrompt(request, context),
    },
    completion: {
      complete: (request, context) =>
        lent(context, async ({ client }, release) => {
          if (client.completion === undefined) throw lacks(server, "completion");
          const completed = await client.completion.complete(request, context);
          release();
          return completed;
        }),
    },
  };
}

/** How long the skills of one server are waited for, at first and once they are known: a list is of all servers. */
const maxFirstMs = 5000;
const maxAgainMs = 1000;
/** How long skills that were late are not waited for. */
const lateMs = 30_000;

async function watchOn(
  { client, pooled }: Loan,
  uri: string,
  { signal }: CallContext,
  { pool: { everyone }, watchesForAll }: UpstreamFacetsOptions,
): Promise<() => void> {
  try {
    return await pooled.watches.add(uri, client);
  } catch (error) {
    // Some servers watch for modern clients only, though they speak to legacy ones too.
    const isUnknown = error instanceof RpcError && error.rpcCode === rpcCodes["rpc.method_not_found"];
    const isLess = isUnknown || error instanceof NotFoundError;
    if (pooled === everyone || !isLess || !watchesForAll) throw error;
  }
  pooled.watchesElsewhere = true;
  return everyone.watches.add(uri, await everyone.connection.whenUp(signal));
}
