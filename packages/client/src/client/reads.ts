import { Buffer } from "node:buffer";
import type { Clock } from "@junctor/core/async";
import { RpcError, NotFoundError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import {
  type ClientCapabilities,
  type CompletionRef,
  type CompletionResult,
  type PromptResult,
  type ResourceResult,
  isAppOnly,
  isVisibleTo,
  originKey,
  viewType,
  viewUriOf,
  type ViewCsp,
  type ViewPermissions,
  type Meta,
  type Resource,
  type Tool,
  type ToolResult,
} from "@junctor/core/mcp";
import { defined } from "@junctor/core/options";
import {
  createCallContext,
  createCompletion,
  createOperation,
  type Operation,
  type Provider,
} from "@junctor/core/provider";
import { type QuestionHandlers, answerAll, fulfil } from "./handlers.ts";
import type { CallOptions } from "./tool-calls.ts";

/** What may stop a read. */
export interface ReadOptions {
  /** Cancels the request. */
  readonly signal?: AbortSignal;
}

/** How programs read resources, get prompts and complete. The handlers answer what the server asks. */
export interface Reads {
  readResource(uri: string, options?: ReadOptions): Promise<ResourceResult>;
  getPrompt(
    name: string,
    args?: { readonly [name: string]: string },
    options?: ReadOptions,
  ): Promise<PromptResult>;
  complete(
    ref: CompletionRef,
    argument: { readonly name: string; readonly value: string },
    known?: { readonly [name: string]: string },
    options?: ReadOptions,
  ): Promise<CompletionResult>;
}

interface ReadsOptions {
  readonly provider: Pick<Provider, "call" | "offers">;
  readonly handlers: QuestionHandlers;
  readonly capabilities: ClientCapabilities;
  readonly maxRounds: number;
  readonly clock: Clock;
}

export function createReads({ provider, handlers, capabilities, maxRounds, clock }: ReadsOptions): Reads {
  const read = async (operation: Operation, what: string, { signal }: ReadOptions): Promise<unknown> => {
    const context = createCallContext(defined({ capabilities, signal }));
    if (!provider.offers(context).serves(operation.method))
      throw new RpcError("rpc.method_not_found", `The server offers no ${what}`);
    const outcome = await fulfil(
      (round) => provider.call(round === undefined ? operation : { ...operation, round }, context),
      (asks) => answerAll(asks, handlers, context.signal, clock),
      maxRounds,
    );
    return outcome.kind === "complete" ? outcome.result.value : {};
  };

  return {
    readResource: async (uri, options = {}) =>
      (await read(createOperation("resources/read", uri), "resources", options)) as ResourceResult,
    getPrompt: async (name, args = {}, options = {}) =>
      (await read(
        createOperation("prompts/get", name, { arguments: args }),
        "prompts",
        options,
      )) as PromptResult,
    complete: async (ref, argument, known = {}, options = {}) => {
      const hasKnown = Object.keys(known).length > 0;
      const params = { ref, argument, ...(hasKnown ? { context: { arguments: known } } : {}) };
      const operation = createCompletion(RawJson.fromValue(params));
      const result = (await read(operation, "completion", options)) as {
        readonly completion?: CompletionResult;
      };
      return result.completion ?? { values: [] };
    },
  };
}

/** The page of a tool, as a host shows it. The other members are the server's unchecked requests to the host. */
interface ReadView {
  readonly uri: string;
  readonly html: string;
  readonly csp?: ViewCsp;
  readonly permissions?: ViewPermissions;
  readonly domain?: string;
  readonly prefersBorder?: boolean;
}

/** Views of tools, for programs that show them. Give `connect` the option `views`. */
export interface Apps {
  /**
   * Reads the view of a tool. Rejects with a `TypeError` for a tool without one, and with an `RpcError` if the content is not a page. Show it
   * in a frame of its own, which may do no more than `csp` and `permissions` say and you allow.
   */
  readView(tool: Tool, options?: ReadOptions): Promise<ReadView>;
  /**
   * Calls a tool for a view. `tool` is the tool whose view it is, `name` the name that the view uses: views know only the tools of their own
   * server, under its own names. Rejects with a `NotFoundError` for a tool that is not for views.
   */
  callFromApp(tool: Tool, name: string, args?: object, options?: CallOptions): Promise<ToolResult>;
}

interface AppsOptions {
  readonly listTools: () => Promise<readonly Tool[]>;
  readonly listResources: () => Promise<readonly Resource[]>;
  readonly readResource: Reads["readResource"];
  readonly call: (name: string, args: object, options: CallOptions) => Promise<ToolResult>;
}

export function createApps({ listTools, listResources, readResource, call }: AppsOptions): Apps {
  return {
    readView: async (tool, options = {}) => {
      const uri = viewUriOf(tool);
      if (uri === undefined) throw new TypeError(`The tool ${JSON.stringify(tool.name)} has no view`);
      const { contents } = await readResource(uri, options);
      const page = contents.find((content) => content.uri === uri && isPage(content.mimeType));
      if (page === undefined)
        throw new RpcError("rpc.other", `The server sent no content of the type ${viewType} for ${uri}`);
      const html = "text" in page ? page.text : Buffer.from(page.blob, "base64").toString("utf8");
      // The page's own settings win; some servers state them only in the resource list.
      const settings =
        settingsOf(page._meta) ??
        settingsOf((await listResources()).find((resource) => resource.uri === uri)?._meta);
      return { uri, html, ...settings };
    },
    callFromApp: async (tool, name, args = {}, options = {}) => {
      const server = originOf(tool)?.server;
      const listed = (await listTools()).find((candidate) => {
        const origin = originOf(candidate);
        if (server === undefined) return candidate.name === name;
        return origin?.server === server && (origin.name === name || candidate.name === name);
      });
      if (listed === undefined || !isVisibleTo(listed, "app")) throw new NotFoundError("tool", name);
      return call(listed.name, args, options);
    },
  };
}

/** The tools of a list that a model may use: those that are not for views alone. */
export function modelTools(tools: readonly Tool[]): readonly Tool[] {
  return tools.filter((tool) => !isAppOnly(tool));
}

function isPage(mimeType: string | undefined): boolean {
  return mimeType?.toLowerCase().replaceAll(/\s/g, "") === viewType;
}

type Settings = Omit<ReadView, "uri" | "html">;

function settingsOf(meta: Meta | undefined): Settings | undefined {
  const ui = meta?.["ui"];
  if (typeof ui !== "object" || ui === null) return undefined;
  const { csp, permissions, domain, prefersBorder } = ui as Settings;
  return defined({ csp, permissions, domain, prefersBorder });
}

/** Behind a gateway: the server of a tool, and its own name for it. */
function originOf({ _meta }: Tool): { readonly server: unknown; readonly name: unknown } | undefined {
  const origin = _meta?.[originKey];
  return typeof origin === "object" && origin !== null
    ? (origin as { readonly server: unknown; readonly name: unknown })
    : undefined;
}
