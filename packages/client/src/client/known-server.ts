import type { PromptResult, ToolResult } from "@junctor/core/mcp";
import type { Client } from "./client.ts";
import type { ReadOptions } from "./reads.ts";
import type { StartedCall } from "./tasks.ts";
import type { CallPart, CallOptions } from "./tool-calls.ts";

/** What is known of a server when a program is compiled, as `junctor types` prints it. */
export interface ServerTypes {
  /** By name. The result is the structured content of a call that did not fail; undefined for a tool that states none. */
  readonly tools: { readonly [name: string]: { readonly args: unknown; readonly result: unknown } };
  readonly prompts: { readonly [name: string]: { readonly args: unknown } };
}

/** A client whose tools and prompts the compiler knows. For an unknown server it is `Client`. */
export type ClientOf<Known> = unknown extends Known
  ? Client
  : Known extends ServerTypes
    ? Omit<Client, keyof KnownCalls<Known>> & KnownCalls<Known>
    : never;

interface KnownCalls<Known extends ServerTypes> {
  callTool<Name extends keyof Known["tools"]>(
    name: Name,
    ...parameters: CallParameters<Known["tools"][Name]["args"], CallOptions>
  ): Promise<KnownResult<Known["tools"][Name]["result"]>>;
  streamTool<Name extends keyof Known["tools"]>(
    name: Name,
    ...parameters: CallParameters<Known["tools"][Name]["args"], CallOptions>
  ): AsyncGenerator<CallPart, void>;
  startTool<Name extends keyof Known["tools"]>(
    name: Name,
    ...parameters: CallParameters<Known["tools"][Name]["args"], CallOptions>
  ): Promise<StartedCall>;
  getPrompt<Name extends keyof Known["prompts"]>(
    name: Name,
    ...parameters: CallParameters<Known["prompts"][Name]["args"], ReadOptions>
  ): Promise<PromptResult>;
}

/** The parameters of a call. Arguments that are all optional may be left out. */
type CallParameters<Args, Options> =
  Record<string, never> extends Args ? [args?: Args, options?: Options] : [args: Args, options?: Options];

/** The result of a known tool. A failed one has no structured content. */
type KnownResult<Result> = Result extends undefined
  ? ToolResult
  :
      | (Omit<ToolResult, "isError" | "structuredContent"> & {
          readonly isError?: false;
          readonly structuredContent: Result;
        })
      | (Omit<ToolResult, "isError"> & { readonly isError: true });
