import { projectPrompt, projectPromptResult } from "../mcp/projection.ts";
import type { Prompt } from "../mcp/types.ts";
import type { PromptProvider } from "../tools/provider.ts";
import { interact, type InteractionOptions } from "./interaction.ts";
import { type Finish, type Method, stringParam, stringsParam } from "./method.ts";
import { createPager, type FinishPage } from "./pages.ts";

export interface PromptMethodOptions {
  readonly finish: Finish;
  readonly interaction: InteractionOptions;
  readonly pageSize: number;
  readonly finishPage: FinishPage;
}

/** `prompts/list` and `prompts/get`. */
export function createPromptMethods(
  prompts: PromptProvider,
  options: PromptMethodOptions,
): { list: Method; get: Method } {
  const { finish, finishPage, interaction, pageSize } = options;
  const pager = createPager<Prompt>({
    member: "prompts",
    keyOf: (prompt) => prompt.name,
    project: projectPrompt,
    pageSize,
    finish: finishPage,
  });
  return {
    list: async ({ params, wire, context }) =>
      pager(await prompts.listPrompts(context), params?.at("cursor"), wire.era),

    get: async ({ request, params, wire, context }) => {
      const { era } = wire;
      const name = stringParam(params, "name");
      const args = stringsParam(params, "arguments");
      const ended = await interact(request, wire, interaction, (resumption) =>
        prompts.getPrompt({ name, arguments: args, resumption }, context),
      );
      const finished = finish(ended.result, era);
      if (ended.kind === "complete" && era.kind === "legacy" && era.session !== undefined) {
        return projectPromptResult(finished, era.session.handshake.revision);
      }
      return finished;
    },
  };
}
