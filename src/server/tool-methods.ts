import { andThen, type Awaitable, settled, tryThen } from "../async/awaitable.ts";
import { NotFoundError } from "../errors/not-found-error.ts";
import { ToolError } from "../errors/tool-error.ts";
import { RawJson } from "../json/raw.ts";
import { assertParamHeaders } from "../mcp/mirrored-headers.ts";
import { hasObjectRoot, projectTool, projectToolResult } from "../mcp/projection.ts";
import type { Tool } from "../mcp/types.ts";
import { failure } from "../tools/content.ts";
import type { CallContext } from "../tools/context.ts";
import type { Provider } from "../tools/provider.ts";
import { type Attempt, interact, type InteractionOptions } from "./interaction.ts";
import { assertObject, type Finish, type Method, objectParam, type Served, stringParam } from "./method.ts";
import { createPager, type FinishPage } from "./pages.ts";
import type { UnknownTool } from "./to-rpc-error.ts";

export interface ToolMethodOptions {
  readonly finish: Finish;
  readonly finishPage: FinishPage;
  readonly interaction: InteractionOptions;
  readonly pageSize: number;
  readonly unknownTool: UnknownTool;
}

const noArguments = RawJson.fromText("{}");

/** `tools/list` and `tools/call`. */
export function createToolMethods(
  provider: Provider,
  options: ToolMethodOptions,
): { list: Method; call: Method } {
  const { finish, finishPage, interaction, pageSize, unknownTool } = options;
  const pager = createPager<Tool>({
    member: "tools",
    keyOf: (tool) => tool.name,
    project: projectTool,
    pageSize,
    finish: finishPage,
  });

  const findTool = (name: string, context: CallContext): Awaitable<Tool | undefined> =>
    provider.toolNamed === undefined
      ? andThen(settled(provider.listTools(context)), (tools) => byName(tools).get(name))
      : settled(provider.toolNamed(name, context));

  const isWrapped = (name: string, { context }: Served): Awaitable<boolean> =>
    andThen(findTool(name, context), (tool) => {
      const schema = tool?.outputSchema;
      return schema !== undefined && !hasObjectRoot(schema);
    });

  const toResult = (name: string, result: RawJson, served: Served): Awaitable<RawJson> => {
    const { era } = served.wire;
    if (era.kind === "modern" || era.session === undefined) return finish(result, era);
    assertObject(result);
    const { revision } = era.session.handshake;
    const hasStructured = result.has("structuredContent");
    return andThen(hasStructured && isWrapped(name, served), (wrapped) =>
      projectToolResult(result, revision, wrapped),
    );
  };

  const call = (name: string, args: RawJson, served: Served): Awaitable<RawJson> => {
    const { request, wire, context } = served;
    const attempt: Attempt = (resumption) =>
      provider.callTool({ name, arguments: args, resumption }, context);
    const rescue = (error: unknown): RawJson => {
      const told = toFailure(error, unknownTool);
      if (told === undefined) throw error;
      return finish(RawJson.fromValue(failure(told)), wire.era);
    };
    return tryThen(
      () => interact(request, wire, interaction, attempt),
      (ended) =>
        ended.kind === "complete" ? toResult(name, ended.result, served) : finish(ended.result, wire.era),
      rescue,
    );
  };

  return {
    list: ({ params, wire, context }) =>
      andThen(settled(provider.listTools(context)), (tools) => pager(tools, params?.at("cursor"), wire.era)),

    call: (served) => {
      const { params, wire, context } = served;
      const name = stringParam(params, "name");
      const args = objectParam(params, "arguments") ?? noArguments;
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

/** What the model is told about a failed call; undefined when the client is told instead. */
function toFailure(error: unknown, unknownTool: UnknownTool): string | undefined {
  if (error instanceof ToolError) return error.message;
  const isUnknown = error instanceof NotFoundError && error.what === "tool";
  return isUnknown && unknownTool === "is_error" ? error.message : undefined;
}
