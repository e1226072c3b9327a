/**
 * What MCP objects look like, in the shape of the newest revision. Older revisions have fewer fields; `projection.ts`
 * takes away what a revision lacks. Unknown members are legal everywhere and are kept.
 */

export interface Icon {
  readonly src: string;
  readonly mimeType?: string;
  readonly sizes?: readonly string[];
  readonly theme?: "light" | "dark";
}

/** The name and version of a server or client. Self-reported: for display and logs, never for decisions. */
export interface Implementation {
  readonly name: string;
  readonly version: string;
  readonly title?: string;
  readonly description?: string;
  readonly icons?: readonly Icon[];
  readonly websiteUrl?: string;
}

/** Whether a value is an object with the strings `name` and `version`. */
export function isImplementation(value: unknown): value is Implementation {
  if (typeof value !== "object" || value === null) return false;
  const { name, version } = value as Record<string, unknown>;
  return typeof name === "string" && typeof version === "string";
}

export type Meta = { readonly [key: string]: unknown };

interface Annotations {
  readonly audience?: readonly ("user" | "assistant")[];
  readonly priority?: number;
  readonly lastModified?: string;
}

interface Block {
  readonly annotations?: Annotations;
  readonly _meta?: Meta;
}

export interface TextContent extends Block {
  readonly type: "text";
  readonly text: string;
}

export interface ImageContent extends Block {
  readonly type: "image";
  /** Base64. */
  readonly data: string;
  readonly mimeType: string;
}

export interface AudioContent extends Block {
  readonly type: "audio";
  /** Base64. */
  readonly data: string;
  readonly mimeType: string;
}

export interface ResourceLink extends Block, Omit<Resource, "annotations" | "_meta"> {
  readonly type: "resource_link";
}

export interface EmbeddedResource extends Block {
  readonly type: "resource";
  readonly resource: ResourceContents;
}

/** A block of a tool's result or of a message: text, an image, audio, or a resource. */
export type Content = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource;

/** Text or base64 `blob` of one resource. */
export type ResourceContents = {
  readonly uri: string;
  readonly mimeType?: string;
  readonly _meta?: Meta;
} & ({ readonly text: string } | { readonly blob: string });

/** A resource as it is listed. */
export interface Resource {
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly size?: number;
  readonly icons?: readonly Icon[];
  readonly annotations?: Annotations;
  readonly _meta?: Meta;
}

/** A family of resources, listed by the template of their URIs. */
export interface ResourceTemplate extends Omit<Resource, "uri" | "size"> {
  readonly uriTemplate: string;
}

export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** A tool as it is listed. */
export interface Tool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: { readonly [keyword: string]: unknown };
  readonly outputSchema?: { readonly [keyword: string]: unknown };
  readonly annotations?: ToolAnnotations;
  readonly icons?: readonly Icon[];
  readonly _meta?: Meta;
}

/** What a finished tool call gives back. */
export interface ToolResult {
  readonly content: readonly Content[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
  readonly _meta?: Meta;
}

export interface PromptArgument {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly required?: boolean;
}

/** A prompt as it is listed. */
export interface Prompt {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly arguments?: readonly PromptArgument[];
  readonly icons?: readonly Icon[];
  readonly _meta?: Meta;
}

/** One message of a prompt, for the model to read. */
export interface PromptMessage {
  readonly role: "user" | "assistant";
  readonly content: Content;
}

export interface PromptResult {
  readonly description?: string;
  readonly messages: readonly PromptMessage[];
  readonly _meta?: Meta;
}

export interface ResourceResult {
  readonly contents: readonly ResourceContents[];
  readonly _meta?: Meta;
}

/** What a completion is asked about: an argument of a prompt, or a variable of a resource template. */
export type CompletionRef =
  | { readonly type: "ref/prompt"; readonly name: string; readonly title?: string }
  | { readonly type: "ref/resource"; readonly uri: string };

export interface CompletionResult {
  readonly values: readonly string[];
  readonly total?: number;
  readonly hasMore?: boolean;
}

/** What a client can be asked for. Names we do not know are kept. */
export interface ClientCapabilities {
  readonly elicitation?: { readonly form?: object; readonly url?: object };
  readonly sampling?: { readonly tools?: object; readonly context?: object };
  readonly roots?: { readonly listChanged?: boolean };
  readonly extensions?: { readonly [id: string]: object };
  readonly [name: string]: unknown;
}

export interface ServerCapabilities {
  readonly tools?: { readonly listChanged?: boolean };
  readonly resources?: { readonly listChanged?: boolean; readonly subscribe?: boolean };
  readonly prompts?: { readonly listChanged?: boolean };
  readonly completions?: object;
  readonly logging?: object;
  readonly extensions?: { readonly [id: string]: object };
  readonly [name: string]: unknown;
}

/** Severities of log messages, least first. */
export const logLevels = [
  "debug",
  "info",
  "notice",
  "warning",
  "error",
  "critical",
  "alert",
  "emergency",
] as const;
/** How severe a log message is, by the names of syslog. */
export type LogLevel = (typeof logLevels)[number];

export function isLogLevel(value: unknown): value is LogLevel {
  return (logLevels as readonly unknown[]).includes(value);
}

/** A question a server puts to the user or the model behind the client. */
export type Question =
  | { readonly method: "elicitation/create"; readonly params: { readonly [key: string]: unknown } }
  | { readonly method: "sampling/createMessage"; readonly params: { readonly [key: string]: unknown } }
  | { readonly method: "roots/list"; readonly params?: { readonly [key: string]: unknown } };

/** How long, and how widely, a client may keep a list or a read. */
export interface CacheHints {
  readonly ttlMs: number;
  readonly cacheScope: "public" | "private";
}

/** Hints for something made of parts that came with these: the shortest time, and private if any part is. */
export function strictestOf(parts: readonly CacheHints[]): CacheHints {
  const ttlMs = Math.min(...parts.map((part) => part.ttlMs));
  const isPublic = parts.every((part) => part.cacheScope === "public");
  return { ttlMs: Number.isFinite(ttlMs) ? ttlMs : 0, cacheScope: isPublic ? "public" : "private" };
}

/** Groups: the draft extension `io.modelcontextprotocol/groups` of 2026-09-28. */

/** A bundle of tools, prompts, resources and further groups that a client fetches when it needs them. */
export interface Group {
  /** 1 to 64 lower-case letters, digits and single hyphens between them. */
  readonly name: string;
  readonly title?: string;
  /** When to use it, for the model. */
  readonly description: string;
  /** How to use what is in it, for the model, as Markdown. Lists on the wire leave it out. */
  readonly instructions?: string;
  /** What is in it, by name; a resource by its URI. Lists on the wire leave it out. */
  readonly contents?: GroupContents;
  readonly _meta?: Meta;
}

/** The lists whose items can be in a group. */
export type GroupedPart = "tools" | "prompts" | "resources" | "groups";

export type GroupContents = { readonly [P in GroupedPart]?: readonly string[] };

const groupName = /^(?!.*--)[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$/;

/** Whether a text can name a group. */
export function isGroupName(name: string): boolean {
  return groupName.test(name);
}
