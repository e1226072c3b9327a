import type { Clock } from "../async/clock.ts";
import { RpcError, rpcCodes } from "../errors/rpc-error.ts";
import { RawJson } from "../json/raw.ts";
import { strictestOf } from "../mcp/cache-hints.ts";
import type { CacheHints, Prompt, Resource, ResourceTemplate, Tool } from "../mcp/types.ts";
import { maxListMs } from "../tools/fit/compile-fault.ts";
import { fitPrompt, fitResource, fitTemplate, fitTool } from "../tools/fit/fit-listed.ts";
import type { ListFault } from "../tools/fit/list-fault.ts";
import type { Change } from "../tools/provider.ts";
import type { Agreement } from "./agreement.ts";
import type { Conversation } from "./conversation.ts";
import type { Limits } from "./deadlines.ts";
import { fitList, type ListReader } from "./fit-list.ts";
import { type Fetched, KeptList } from "./kept-list.ts";
import { type WalkLimits, walkPages } from "./pages.ts";

/** Everything a server lists. */
export interface Lists {
  readonly tools: KeptList<Tool>;
  readonly resources: KeptList<Resource>;
  readonly templates: KeptList<ResourceTemplate>;
  readonly prompts: KeptList<Prompt>;
  /** The strictest of what the server said about keeping its lists. */
  hints(): CacheHints;
  /** What of the lists that were fetched last was mended or left out. */
  faults(): readonly ListFault[];
  /** Something changed, or may have. */
  invalidate(kind: Change["kind"]): void;
}

interface ListsOptions extends WalkLimits {
  readonly clock: Clock;
  /** Lists are kept at most this long, whatever the server says. */
  readonly maxTtlMs: number;
  readonly isHttp: boolean;
  /** Whether a legacy server's announcements reach us; without them its lists are never fresh. */
  readonly isHearing: () => boolean;
  /** Told of what is mended or left out, when it was not so in the list before. */
  readonly onListFault: (fault: ListFault, method: string) => void;
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
  const { clock, maxTtlMs, isHttp, isHearing, onListFault } = options;

  const fetchList = async <T extends object>(
    method: string,
    capability: Capability,
    known: () => readonly ListFault[],
    readerFor: (agreement: Agreement) => ListReader<T>,
  ): Promise<Fetched<T>> => {
    const { agreement } = await converse();
    const offered = agreement.capabilities[capability];
    if (offered === undefined) return { items: [], faults: [], ttlMs: maxTtlMs, hints: forever };
    const reader = readerFor(agreement);
    const member = reader.part === "templates" ? "resourceTemplates" : reader.part;
    const ask = (params: RawJson | undefined): Promise<RawJson> =>
      request(method, params).catch((error: unknown) => {
        if (capability !== "tools" && params === undefined && isUnknownMethod(error)) return noItems;
        throw error;
      });
    const walked = await walkPages(ask, member, options);
    const { items, faults } = await fitList(walked.items, reader);
    const told = new Set(known().map(toText));
    for (const fault of faults) if (!told.has(toText(fault))) onListFault(fault, method);
    // Legacy servers give no time; those that announce changes can be trusted until they do, if we would hear it.
    const legacyTtlMs = offered.listChanged === true && isHearing() ? maxTtlMs : 0;
    const { hints } = walked;
    return {
      items,
      faults,
      ttlMs: Math.min(agreement.mode.kind === "modern" ? hints.ttlMs : legacyTtlMs, maxTtlMs),
      hints,
    };
  };

  const tools: KeptList<Tool> = new KeptList(
    () =>
      fetchList(
        "tools/list",
        "tools",
        () => tools.faults,
        ({ mode }) => {
          const isLegacy = mode.kind === "legacy";
          const terms = { isLegacy, isMirroring: isHttp && !isLegacy, budget: { leftMs: maxListMs } };
          return { part: "tools", key: "name", fit: (raw) => fitTool(raw, terms) };
        },
      ),
    clock,
  );
  const resources: KeptList<Resource> = new KeptList(
    () =>
      fetchList(
        "resources/list",
        "resources",
        () => resources.faults,
        () => ({
          part: "resources",
          key: "uri",
          fit: fitResource,
        }),
      ),
    clock,
  );
  const templates: KeptList<ResourceTemplate> = new KeptList(
    () =>
      fetchList(
        "resources/templates/list",
        "resources",
        () => templates.faults,
        () => ({
          part: "templates",
          key: "uriTemplate",
          fit: fitTemplate,
        }),
      ),
    clock,
  );
  const prompts: KeptList<Prompt> = new KeptList(
    () =>
      fetchList(
        "prompts/list",
        "prompts",
        () => prompts.faults,
        () => ({
          part: "prompts",
          key: "name",
          fit: fitPrompt,
        }),
      ),
    clock,
  );
  return {
    tools,
    resources,
    templates,
    prompts,
    hints: () => strictestOf([tools, resources, templates, prompts].flatMap((list) => list.hints ?? [])),
    faults: () => [tools, resources, templates, prompts].flatMap(({ faults }) => faults),
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

function toText({ name, reason }: ListFault): string {
  return `${name}\n${reason}`;
}
