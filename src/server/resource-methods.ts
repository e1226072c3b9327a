import { RawJson } from "../json/raw.ts";
import { projectListed } from "../mcp/projection.ts";
import type { CacheHints, Resource, ResourceTemplate } from "../mcp/types.ts";
import type { ResourceProvider } from "../tools/provider.ts";
import { interact, type InteractionOptions } from "./interaction.ts";
import { type Finish, type Method, stringParam } from "./method.ts";
import { createPager, type FinishPage } from "./pages.ts";

export interface ResourceMethodOptions {
  readonly finish: Finish;
  readonly interaction: InteractionOptions;
  readonly pageSize: number;
  readonly finishPage: FinishPage;
  /** How long what is read may be kept, where the provider does not say. */
  readonly hints: () => CacheHints;
}

const empty = RawJson.fromText("{}");
/** What depends on answers that only this caller gave is not for keeping (2026-07-28, multi round-trip requests). */
const uncached: CacheHints = { ttlMs: 0, cacheScope: "private" };

/** The methods about resources; `subscribe` and `unsubscribe` exist for legacy clients only. */
export function createResourceMethods(
  resources: ResourceProvider,
  options: ResourceMethodOptions,
): Readonly<Record<"list" | "listTemplates" | "read" | "subscribe" | "unsubscribe", Method>> {
  const { finish, finishPage, interaction, pageSize, hints } = options;
  const listPager = createPager<Resource>({
    member: "resources",
    keyOf: (resource) => resource.uri,
    project: projectListed,
    pageSize,
    finish: finishPage,
  });
  const templatePager = createPager<ResourceTemplate>({
    member: "resourceTemplates",
    keyOf: (template) => template.uriTemplate,
    project: projectListed,
    pageSize,
    finish: finishPage,
  });
  return {
    list: async ({ params, wire, context }) =>
      listPager(await resources.listResources(context), params?.at("cursor"), wire.era),

    listTemplates: async ({ params, wire, context }) =>
      templatePager(await resources.listTemplates(context), params?.at("cursor"), wire.era),

    read: async ({ request, params, wire, context }) => {
      const uri = stringParam(params, "uri");
      const ended = await interact(request, wire, interaction, (resumption) =>
        resources.readResource({ uri, resumption }, context),
      );
      if (ended.kind === "input_required") return finish(ended.result, wire.era);
      const isRetry = ["inputResponses", "requestState"].some((key) => params?.at(key) !== undefined);
      return finish(ended.result, wire.era, isRetry ? uncached : hints());
    },

    subscribe: async ({ params, wire, context }) => {
      const uri = stringParam(params, "uri");
      const session = wire.era.kind === "legacy" ? wire.era.session : undefined;
      if (session !== undefined && !session.subscriptions.has(uri)) {
        const stop = (await resources.watch?.(uri, context)) ?? (() => {});
        // The same request may have come twice at once; one watch is enough.
        session.subscriptions.get(uri)?.();
        session.subscriptions.set(uri, stop);
      }
      return empty;
    },

    unsubscribe: async ({ params, wire }) => {
      const uri = stringParam(params, "uri");
      const session = wire.era.kind === "legacy" ? wire.era.session : undefined;
      session?.subscriptions.get(uri)?.();
      session?.subscriptions.delete(uri);
      return empty;
    },
  };
}
