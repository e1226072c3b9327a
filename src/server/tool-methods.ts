import { NotFoundError } from "../errors/not-found-error.ts";
import { ToolError } from "../errors/tool-error.ts";
import { RawJson } from "../json/raw.ts";
import { hasObjectRoot, projectTool } from "../mcp/project/listed.ts";
import { projectToolResult } from "../mcp/project/result.ts";
import type { Tool } from "../mcp/types.ts";
import { failure } from "../tools/content.ts";
import type { Provider } from "../tools/provider.ts";
import type { Finish } from "./finish.ts";
import { interact, type InteractionOptions } from "./interaction.ts";
import { type Method, objectParam, type Served, stringParam } from "./method.ts";
import { createPager } from "./pages.ts";
import { assertParamHeaders } from "./param-headers.ts";
import type { UnknownTool } from "./to-rpc-error.ts";

export interface ToolMethodOptions {
  readonly finish: Finish;
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
  const { finish, interaction, pageSize, unknownTool } = options;
  const hints = provider.cacheHints ?? { ttlMs: 0, cacheScope: "private" as const };
  const pager = createPager<Tool>({
    member: "tools",
    keyOf: (tool) => tool.name,
    project: projectTool,
    pageSize,
    finish: (page, era) => finish(page, era, hints),
  });

  const findTool = async (name: string, { context }: Served): Promise<Tool | undefined> =>
    (await provider.listTools(context)).find((tool) => tool.name === name);

  const isWrapped = async (name: string, served: Served): Promise<boolean> => {
    const schema = (await findTool(name, served))?.outputSchema;
    return schema !== undefined && !hasObjectRoot(schema);
  };

  const toResult = async (name: string, result: RawJson, served: Served): Promise<RawJson> => {
    const { era } = served.wire;
    if (era.kind === "modern" || era.session === undefined) return finish(result, era);
    const needsSchema = result.at("structuredContent") !== undefined;
    return projectToolResult(
      result,
      era.session.handshake.revision,
      needsSchema && (await isWrapped(name, served)),
    );
  };

  return {
    list: async ({ params, wire, context }) =>
      pager(await provider.listTools(context), params?.at("cursor"), wire.era),

    call: async (served) => {
      const { request, params, wire, context } = served;
      const name = stringParam(params, "name");
      const args = objectParam(params, "arguments") ?? noArguments;
      if (wire.headers !== undefined && wire.era.kind === "modern") {
        assertParamHeaders(await findTool(name, served), args, wire.headers);
      }
      try {
        const ended = await interact(request, wire, interaction, (resumption) =>
          provider.callTool({ name, arguments: args, resumption }, context),
        );
        return ended.kind === "complete"
          ? await toResult(name, ended.result, served)
          : finish(ended.result, wire.era);
      } catch (error) {
        const told = toFailure(error, unknownTool);
        if (told === undefined) throw error;
        return finish(RawJson.fromValue(failure(told)), wire.era);
      }
    },
  };
}

/** What the model is told about a failed call; undefined when the client is told instead. */
function toFailure(error: unknown, unknownTool: UnknownTool): string | undefined {
  if (error instanceof ToolError) return error.message;
  const isUnknown = error instanceof NotFoundError && error.what === "tool";
  return isUnknown && unknownTool === "is_error" ? error.message : undefined;
}
