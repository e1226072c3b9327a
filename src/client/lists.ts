import type { Clock } from "../async/clock.ts";
import { RpcError, rpcCodes } from "../errors/rpc-error.ts";
import { RawJson } from "../json/raw.ts";
import { strictestOf } from "../mcp/cache-hints.ts";
import type { CacheHints, Prompt, Resource, ResourceTemplate, Tool } from "../mcp/types.ts";
import type { Change } from "../tools/provider.ts";
import type { Conversation } from "./conversation.ts";
import type { Limits } from "./deadlines.ts";
import { type Fetched, KeptList } from "./kept-list.ts";
import { type WalkLimits, walkPages } from "./pages.ts";
import { parsePrompt, parseResource, parseTemplate, parseTool, type ParseListed } from "./parse-listed.ts";

/** Everything a server lists. */
export interface Lists {
  readonly tools: KeptList<Tool>;
  readonly resources: KeptList<Resource>;
  readonly templates: KeptList<ResourceTemplate>;
  readonly prompts: KeptList<Prompt>;
  /** The strictest of what the server said about keeping its lists. */
  hints(): CacheHints;
  /** Something changed, or may have. */
  invalidate(kind: Change["kind"]): void;
}

export interface ListsOptions extends WalkLimits {
  readonly clock: Clock;
  /** Lists are kept at most this long, whatever the server says. */
  readonly maxTtlMs: number;
  readonly isHttp: boolean;
  /** Whether a legacy server's announcements reach us; without them its lists are never fresh. */
  readonly isHearing: () => boolean;
  readonly onWarning: (text: string) => void;
}

/** A request under a deadline of its own. */
export type PlainRequest = (method: string, params: RawJson | undefined, limits?: Limits) => Promise<RawJson>;

/** What is not offered stays empty. */
const forever: CacheHints = { ttlMs: Number.POSITIVE_INFINITY, cacheScope: "public" };

/** The answer of a server that declares a capability and lacks one of its lists: many have no resource templates. */
const noItems: RawJson = RawJson.fromValue({});

type Capability = "tools" | "resources" | "prompts";

export function createLists(
  converse: () => Promise<Conversation>,
  request: PlainRequest,
  options: ListsOptions,
): Lists {
  const { clock, maxTtlMs, isHttp, isHearing, onWarning } = options;

  const fetchList = async <T>(
    method: string,
    member: string,
    capability: Capability,
    parse: ParseListed<T>,
  ): Promise<Fetched<T>> => {
    const { agreement } = await converse();
    const offered = agreement.capabilities[capability];
    if (offered === undefined) return { items: [], ttlMs: maxTtlMs, hints: forever };
    const ask = (params: RawJson | undefined): Promise<RawJson> =>
      request(method, params).catch((error: unknown) => {
        if (capability !== "tools" && params === undefined && isUnknownMethod(error)) return noItems;
        throw error;
      });
    const { items, hints } = await walkPages(ask, member, options);
    const parsed = items.flatMap((raw) => {
      const item = parse(raw);
      if (typeof item !== "string") return [item];
      onWarning(`Left out of ${method}: ${item}`);
      return [];
    });
    // Legacy servers give no time; those that announce changes can be trusted until they do, if we would hear it.
    const legacyTtlMs = offered.listChanged === true && isHearing() ? maxTtlMs : 0;
    return {
      items: parsed,
      ttlMs: Math.min(agreement.mode.kind === "modern" ? hints.ttlMs : legacyTtlMs, maxTtlMs),
      hints,
    };
  };

  const tools = new KeptList<Tool>(async () => {
    const { agreement } = await converse();
    return fetchList("tools/list", "tools", "tools", parseTool(isHttp && agreement.mode.kind === "modern"));
  }, clock);
  const resources = new KeptList(
    () => fetchList("resources/list", "resources", "resources", parseResource),
    clock,
  );
  const templates = new KeptList(
    () => fetchList("resources/templates/list", "resourceTemplates", "resources", parseTemplate),
    clock,
  );
  const prompts = new KeptList(() => fetchList("prompts/list", "prompts", "prompts", parsePrompt), clock);
  return {
    tools,
    resources,
    templates,
    prompts,
    hints: () => strictestOf([tools, resources, templates, prompts].flatMap((list) => list.hints ?? [])),
    invalidate: (kind) => {
      if (kind === "tools") tools.invalidate();
      if (kind === "prompts") prompts.invalidate();
      if (kind === "resources") {
        resources.invalidate();
        templates.invalidate();
      }
    },
  };
}

function isUnknownMethod(error: unknown): boolean {
  return error instanceof RpcError && error.rpcCode === rpcCodes["rpc.method_not_found"];
}
