import { andThen, type Awaitable, settled, tryThen } from "@junctor/core/async";
import { NotFoundError, RpcError, ToolError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import {
  declaredExtension,
  extensionIds,
  needsExtension,
  assertParamHeaders,
  hasObjectRoot,
  projectListed,
  projectPrompt,
  projectPromptResult,
  projectTool,
  projectToolResult,
  type CacheHints,
  type CompletionRef,
  type Resource,
  type ResourceTemplate,
  type Tool,
} from "@junctor/core/mcp";
import {
  failure,
  type CallContext,
  type CompletionProvider,
  type PromptProvider,
  type OldProvider,
  type ResourceProvider,
} from "@junctor/core/provider";
import { interact, type InteractionOptions, type RoundAttempt } from "./interaction.ts";
import type { ListenLimits } from "./listen-limits.ts";
import { createFinishPage, createPager, type ServeList } from "./pages.ts";
import {
  assertObject,
  empty,
  type Finish,
  hintsOf,
  type Method,
  type Methods,
  type MethodTable,
  objectParam,
  type Served,
  sessionOf,
  stringParam,
  stringsParam,
} from "./served.ts";
import { skillMethods } from "./skills.ts";
import { taskMethods } from "./tasks.ts";
import type { UnknownTool } from "./to-rpc-error.ts";

interface MethodOptions {
  readonly finish: Finish;
  readonly interaction: InteractionOptions;
  readonly pageSize: number;
  readonly unknownTool: UnknownTool;
  readonly takeCompletion: ListenLimits["takeCompletion"];
  readonly onError: (error: unknown, method: string) => void;
}

/** The methods that depend on what the provider offers. Those of a facet it lacks do not exist. */
export function createMethods(provider: OldProvider, options: MethodOptions): MethodTable {
  const { finish } = options;
  const { resources, prompts, completion, tasks, skills } = provider;
  const finishPage = createFinishPage(provider, finish);
  const parts: Parts = {
    finish,
    list: (spec, list) => {
      const { maxPage = Number.POSITIVE_INFINITY, ...paged } = spec;
      const pageSize = Math.min(options.pageSize, maxPage);
      const onFault = (error: unknown): void => options.onError(error, `${paged.member}/list`);
      const pager = createPager({ ...paged, pageSize, finish: finishPage, onFault });
      return ({ params, wire, context }) =>
        andThen(settled(list(context, params)), (items) => pager(items, params?.at("cursor"), wire.era));
    },
    answer: (served, attempt, complete, rescue = rethrow) =>
      tryThen(
        () => interact(served.request, served.wire, options.interaction, attempt),
        (ended) => {
          served.wire.observation?.outcome(ended.kind, ended.result);
          return ended.kind === "complete" ? complete(ended.result) : finish(ended.result, served.wire.era);
        },
        (error) => {
          served.wire.observation?.failed(error);
          return rescue(error);
        },
      ),
  };
  const both: Methods = {
    ...toolMethods(provider, parts, options.unknownTool),
    ...(resources === undefined ? {} : resourceMethods(resources, parts, () => hintsOf(provider))),
    ...(prompts === undefined ? {} : promptMethods(prompts, parts)),
    ...(completion === undefined ? {} : { "completion/complete": completeMethod(completion, options) }),
    ...(skills === undefined || resources === undefined
      ? {}
      : skillMethods(skills, { finish, list: parts.list, hints: () => hintsOf(provider) })),
  };
  if (tasks === undefined) return { modern: both, legacy: both };
  return { modern: { ...both, ...taskMethods(tasks, options.interaction.seal, finish) }, legacy: both };
}

/** The one way in which tools, prompts and resources are listed and answered. */
interface Parts {
  readonly finish: Finish;
  readonly list: ServeList;
  /** Serves a request that may have to ask its caller something. `complete` makes its result ready. */
  answer(
    served: Served,
    attempt: RoundAttempt,
    complete: (result: RawJson) => Awaitable<RawJson>,
    rescue?: (error: unknown) => RawJson,
  ): Awaitable<RawJson>;
}

function rethrow(error: unknown): never {
  throw error;
}

function toolMethods(
  provider: OldProvider,
  { finish, list, answer }: Parts,
  unknownTool: UnknownTool,
): Methods {
  // What a provider gets later, its server does not offer.
  const hasTasks = provider.tasks !== undefined;
  const findTool = (name: string, context: CallContext): Awaitable<Tool | undefined> =>
    provider.toolNamed === undefined
      ? andThen(settled(provider.listTools(context)), (tools) => byName(tools).get(name))
      : settled(provider.toolNamed(name, context));

  const isWrapped = (name: string, context: CallContext): Awaitable<boolean> =>
    andThen(findTool(name, context), (tool) => {
      const schema = tool?.outputSchema;
      return schema !== undefined && !hasObjectRoot(schema);
    });

  const toResult = (name: string, result: RawJson, { wire, context }: Served): Awaitable<RawJson> => {
    const { era } = wire;
    if (era.kind === "modern" || era.session === undefined) return finish(result, era);
    assertObject(result);
    const { revision } = era.session.handshake;
    return andThen(result.has("structuredContent") && isWrapped(name, context), (wrapped) =>
      projectToolResult(result, revision, wrapped),
    );
  };

  const call = (name: string, args: RawJson, served: Served): Awaitable<RawJson> =>
    answer(
      served,
      (round) => provider.callTool({ name, arguments: args, round }, served.context),
      (result) => toResult(name, result, served),
      (error) => {
        if (!hasTasks) assertNotHidden(error, name, served);
        const text = toFailure(error, unknownTool);
        if (text === undefined) throw error;
        return finish(RawJson.fromValue(failure(text)), served.wire.era);
      },
    );

  return {
    "tools/list": list({ member: "tools", keyOf: ({ name }) => name, project: projectTool }, (context) =>
      provider.listTools(context),
    ),
    "tools/call": (served) => {
      const { params, wire, context } = served;
      const name = stringParam(params, "name");
      const args = objectParam(params, "arguments") ?? empty;
      const { headers } = wire;
      if (headers === undefined || wire.era.kind === "legacy") return call(name, args, served);
      return andThen(findTool(name, context), (tool) => {
        assertParamHeaders(tool, args, headers);
        return call(name, args, served);
      });
    },
  };
}

const named = new WeakMap<readonly Tool[], ReadonlyMap<string, Tool>>();

/** The tools of a list by name, kept for a list that cannot change. */
function byName(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  let found = named.get(tools);
  if (found === undefined) {
    found = new Map(tools.map((tool) => [tool.name, tool]));
    if (Object.isFrozen(tools)) named.set(tools, found);
  }
  return found;
}

/** A provider without tasks gets no caller that knows them. A tool that needs one must not blame a caller that declared it. */
function assertNotHidden(error: unknown, tool: string, { wire: { era } }: Served): void {
  if (era.kind === "legacy" || !needsExtension(error, extensionIds.tasks)) return;
  if (declaredExtension(era.capabilities, extensionIds.tasks) === undefined) return;
  const text =
    `The tool ${tool} runs as a task, and the provider of createServer() has no tasks: register the first such tool before ` +
    "createServer(), or write createRegistry({ tasks: createMemoryTasks() }); a provider around the registry must pass on its tasks";
  throw new TypeError(text, { cause: error });
}

/** The text of the `isError` result for a failed call; undefined for errors that become error responses. */
function toFailure(error: unknown, unknownTool: UnknownTool): string | undefined {
  if (error instanceof ToolError) return error.message;
  const isUnknown = error instanceof NotFoundError && error.what === "tool";
  return isUnknown && unknownTool === "is_error" ? error.message : undefined;
}

function promptMethods(prompts: PromptProvider, { finish, list, answer }: Parts): Methods {
  return {
    "prompts/list": list(
      { member: "prompts", keyOf: ({ name }) => name, project: projectPrompt },
      (context) => prompts.listPrompts(context),
    ),
    "prompts/get": (served) => {
      const { params, wire, context } = served;
      const name = stringParam(params, "name");
      const args = stringsParam(params, "arguments");
      const session = sessionOf(served);
      return answer(
        served,
        (round) => prompts.getPrompt({ name, arguments: args, round }, context),
        (result) => {
          const finished = finish(result, wire.era);
          return session === undefined ? finished : projectPromptResult(finished, session.handshake.revision);
        },
      );
    },
  };
}

/** A result that depends on answers of this caller must not be cached (2026-07-28, multi round-trip requests). */
const uncached: CacheHints = { ttlMs: 0, cacheScope: "private" };

/** `hints` says how long a resource may be cached, where its result does not say. */
function resourceMethods(
  resources: ResourceProvider,
  { finish, list, answer }: Parts,
  hints: () => CacheHints,
): Methods {
  return {
    "resources/list": list(
      { member: "resources", keyOf: ({ uri }: Resource) => uri, project: projectListed },
      (context) => resources.listResources(context),
    ),
    "resources/templates/list": list(
      {
        member: "resourceTemplates",
        keyOf: ({ uriTemplate }: ResourceTemplate) => uriTemplate,
        project: projectListed,
      },
      (context) => resources.listTemplates(context),
    ),
    "resources/read": (served) => {
      const { params, wire, context } = served;
      const uri = stringParam(params, "uri");
      const isRetry = params?.has("inputResponses") === true || params?.has("requestState") === true;
      return answer(
        served,
        (round) => resources.readResource({ uri, round }, context),
        (result) => finish(result, wire.era, isRetry ? uncached : hints()),
      );
    },
  };
}

function completeMethod(completion: CompletionProvider, { finish, takeCompletion }: MethodOptions): Method {
  return async ({ params, wire, context }) => {
    takeCompletion(wire.owner ?? wire.caller);
    const ref = parseRef(objectParam(params, "ref"));
    const argument = objectParam(params, "argument");
    const name = stringParam(argument, "name");
    const value = stringParam(argument, "value");
    const known = stringsParam(objectParam(params, "context"), "arguments");
    const result = await completion.complete({ ref, argument: { name, value }, known }, context);
    return finish(RawJson.fromValue({ completion: result }), wire.era);
  };
}

function parseRef(ref: RawJson | undefined): CompletionRef {
  const type = stringParam(ref, "type");
  if (type === "ref/prompt") return { type, name: stringParam(ref, "name") };
  if (type === "ref/resource") return { type, uri: stringParam(ref, "uri") };
  throw new RpcError("rpc.invalid_params", "Invalid params: ref.type must be ref/prompt or ref/resource");
}
