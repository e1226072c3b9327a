import { fileURLToPath } from "node:url";
import type { Revision } from "../../packages/core/src/mcp/revision.ts";
import type { WireTap } from "../support/wire-tap.ts";

/** A program that serves MCP on its standard streams. */
export interface StdioServer {
  readonly command: string;
  readonly args: string[];
}

const path = (file: string): string => fileURLToPath(new URL(`../../${file}`, import.meta.url));

/** One of everything, on our public interface. */
export function everythingServer(...args: readonly string[]): StdioServer {
  return { command: process.execPath, args: [path("test/fixtures/everything-server.mjs"), ...args] };
}

/** What `junctor serve --stdio` runs. */
export const demoServer: StdioServer = {
  command: process.execPath,
  args: [path("packages/junctor/dist/cli/main.js"), "serve", "--stdio"],
};

export type LogLevel = "debug" | "info" | "warning" | "error";

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: Progress) => void;
  readonly logLevel?: LogLevel;
}

export interface Progress {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

export interface CallResult {
  readonly content: readonly { readonly type: string; readonly [member: string]: unknown }[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
}

export interface Notice {
  readonly method: string;
  readonly params?: unknown;
}

/** What the person and the model behind the client say when a server asks; a test may replace any of them. */
export interface User {
  elicited: (params: { readonly message: string }) => {
    readonly action: "accept" | "decline" | "cancel";
    readonly content?: { readonly [field: string]: string | number };
  };
  sampled: () => string;
  roots: () => readonly string[];
}

/** An official client, whichever it is, connected to a server in a process of its own. */
export interface SdkClient {
  readonly tap: WireTap;
  readonly user: User;
  /** Notifications that belong to no request, in order. */
  readonly notices: readonly Notice[];
  readonly revision: string | undefined;
  readonly serverInfo: unknown;
  readonly capabilities: unknown;
  readonly instructions: string | undefined;
  /** Every tool, of every page. */
  listTools(): Promise<readonly { readonly name: string; readonly [member: string]: unknown }[]>;
  callTool(name: string, args?: object, options?: CallOptions): Promise<CallResult>;
  listResources(): Promise<readonly unknown[]>;
  listTemplates(): Promise<readonly unknown[]>;
  readResource(uri: string): Promise<readonly unknown[]>;
  listPrompts(): Promise<readonly unknown[]>;
  getPrompt(name: string, args?: { readonly [name: string]: string }): Promise<unknown>;
  complete(ref: CompletionRef, argument: { readonly name: string; readonly value: string }): Promise<unknown>;
  /** Hears of changes to a resource and to the list of tools until the returned function is called. */
  watch(uri: string): Promise<() => Promise<void>>;
  /** Closes the client and resolves with how the server's process ended. */
  close(): Promise<{ readonly code: number | null; readonly signal: string | null }>;
}

export type CompletionRef =
  | { readonly type: "ref/prompt"; readonly name: string }
  | { readonly type: "ref/resource"; readonly uri: string };

/** One official client in one revision. */
export interface Dialect {
  readonly name: string;
  readonly revision: Revision;
  connect(server: StdioServer): Promise<SdkClient>;
}

export function createUser(): User {
  return {
    elicited: () => ({ action: "accept", content: { name: "Ada" } }),
    sampled: () => "Pipes, pipes, pipes.",
    roots: () => ["file:///home/ada"],
  };
}
