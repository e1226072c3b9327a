import { RawJson } from "@junctor/core/json";
import type { OldOutcome, OldProvider } from "@junctor/core/provider";
import { connectTool } from "../catalog/index.ts";
import type { PooledConnection } from "../upstream/index.ts";
import type { AccountGuard } from "./account-guard.ts";
import type { Accounts } from "./accounts.ts";

interface AccountProviderOptions {
  readonly accounts: Accounts;
  readonly guard: AccountGuard;
}

/** A server as a provider in which each caller reaches the upstream of its own account and no other. */
export function createAccountProvider({ accounts, guard }: AccountProviderOptions): OldProvider {
  const { ask, use } = guard;
  return {
    // The server hears which caller a list is for; nothing of it is kept by others.
    cacheHints: { ttlMs: 0, cacheScope: "private" },
    listTools: (context) => accounts.find(context)?.upstream?.listedFor(context).tools ?? [],
    callTool: async (call, context) => {
      if (call.name !== connectTool)
        return ask(context, call.round, (upstream, round) =>
          upstream.callTool(round === call.round ? call : { ...call, round }, context),
        );
      const said = await guard.connect(context, call.round);
      if (typeof said !== "string") return said;
      const content = [{ type: "text", text: said }];
      return { kind: "complete", result: RawJson.fromValue({ content }) };
    },
    resources: {
      listResources: async (context) =>
        accounts.find(context)?.upstream?.resources.listResources(context) ?? [],
      listTemplates: async (context) =>
        accounts.find(context)?.upstream?.resources.listTemplates(context) ?? [],
      readResource: (request, context) =>
        ask<OldOutcome>(context, request.round, (upstream, round) =>
          upstream.resources.readResource({ ...request, round }, context),
        ),
      watch: (uri, context) =>
        use(context, async ({ resources }) => (await resources.watch?.(uri, context)) ?? (() => {})),
    },
    prompts: {
      listPrompts: async (context) => accounts.find(context)?.upstream?.prompts.listPrompts(context) ?? [],
      getPrompt: (request, context) =>
        ask<OldOutcome>(context, request.round, (upstream, round) =>
          upstream.prompts.getPrompt({ ...request, round }, context),
        ),
    },
    completion: {
      complete: (request, context) => use(context, ({ completion }) => completion.complete(request, context)),
    },
    tasks: {
      get: (ref, context) => use(context, ({ tasks }) => tasks.get(ref, context)),
      update: (ref, answers, context) => use(context, ({ tasks }) => tasks.update(ref, answers, context)),
      cancel: (ref, context) => use(context, ({ tasks }) => tasks.cancel(ref, context)),
      watch: (ref, context, listener) =>
        use(context, async ({ tasks }) => (await tasks.watch?.(ref, context, listener)) ?? (() => {})),
    },
    skills: {
      // A list is of all servers, so a caller without an account sees none of this one.
      listSkills: async (context) => accounts.find(context)?.upstream?.skills.listSkills(context) ?? [],
      getSkill: (uri, context) => use(context, ({ skills }) => skills.getSkill(uri, context)),
      readDirectory: (uri, context) =>
        use(context, async ({ skills }) => (await skills.readDirectory?.(uri, context)) ?? []),
    },
    methods: {
      has: () => true,
      serve: (method, params, context) =>
        use(context, ({ methods }) => methods.serve(method, params, context)),
    },
    mayHear: (change, callerInfo) => {
      const account = accounts.find(callerInfo);
      const { connection } = change;
      if (account === undefined || connection === undefined || connection === account)
        return account !== undefined;
      const { upstream } = account;
      return (
        upstream?.pool.all.includes(connection as PooledConnection) === true &&
        upstream.mayHear(change, callerInfo)
      );
    },
  };
}
