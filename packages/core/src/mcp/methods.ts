import type { Shape } from "../json/index.ts";
import { defineMessageShape } from "../rpc/index.ts";
import { extensionIds } from "./extension.ts";
import { metaKeys } from "./params.ts";
import type { Skill } from "./skill.ts";
import type { Group, Prompt, Resource, ResourceTemplate, Tool } from "./types.ts";

/** What is listed, by list. A new list of the protocol is a new line here and a row in {@link methods}. */
export interface Items {
  readonly tools: Tool;
  readonly prompts: Prompt;
  readonly resources: Resource;
  readonly templates: ResourceTemplate;
  readonly skills: Skill;
  readonly groups: Group;
}

/** A list of the protocol. */
export type Part = keyof Items;

/** What a request is for, as records, metrics and rules call it. */
export type CallKind = "tool" | "resource" | "prompt" | "completion" | "task" | "group" | "method";

/** One method of the protocol. */
export interface Method {
  readonly method: string;
  /** The era that has it. */
  readonly era: "both" | "modern" | "legacy";
  /** How a provider serves it. A `server` serves it by itself. */
  readonly verb: "list" | "call" | "watch" | "server";
  readonly kind: CallKind;
  /** The list that its name is in, or that it gives; for a completion, its params tell. */
  readonly part?: Part;
  /** The member of the params that names what it is for; the header `Mcp-Name` repeats it. */
  readonly name?: "name" | "uri" | "taskId";
  /** The member of the params that holds the arguments; `params` for all of them. */
  readonly arguments?: "arguments" | "inputResponses" | "params";
  /** Whether it may have to ask its caller something. */
  readonly asks?: true;
  /** The member of a list's result that holds the items. */
  readonly member?: string;
  /** Where URIs are in its result, as paths; `*` is each element of an array. */
  readonly uris?: readonly string[];
  /** The extension that it belongs to. */
  readonly extension?: string;
}

const blockUris = (path: string): readonly string[] => [`${path}.uri`, `${path}.resource.uri`];

const rows: readonly Method[] = [
  { method: "tools/list", era: "both", verb: "list", kind: "tool", part: "tools", member: "tools" },
  { method: "prompts/list", era: "both", verb: "list", kind: "prompt", part: "prompts", member: "prompts" },
  {
    method: "resources/list",
    era: "both",
    verb: "list",
    kind: "resource",
    part: "resources",
    member: "resources",
  },
  {
    method: "resources/templates/list",
    era: "both",
    verb: "list",
    kind: "resource",
    part: "templates",
    member: "resourceTemplates",
  },
  {
    method: "skills/list",
    era: "both",
    verb: "list",
    kind: "resource",
    part: "skills",
    member: "skills",
    extension: extensionIds.skills,
  },
  {
    method: "groups/list",
    era: "modern",
    verb: "list",
    kind: "group",
    part: "groups",
    member: "groups",
    extension: extensionIds.groups,
  },
  {
    method: "groups/get",
    era: "modern",
    verb: "call",
    kind: "group",
    part: "groups",
    name: "name",
    extension: extensionIds.groups,
  },
  {
    method: "tools/call",
    era: "both",
    verb: "call",
    kind: "tool",
    part: "tools",
    name: "name",
    arguments: "arguments",
    asks: true,
    uris: blockUris("content.*"),
  },
  {
    method: "prompts/get",
    era: "both",
    verb: "call",
    kind: "prompt",
    part: "prompts",
    name: "name",
    arguments: "arguments",
    asks: true,
    uris: blockUris("messages.*.content"),
  },
  {
    method: "resources/read",
    era: "both",
    verb: "call",
    kind: "resource",
    part: "resources",
    name: "uri",
    asks: true,
    uris: ["contents.*.uri"],
  },
  {
    method: "resources/directory/read",
    era: "both",
    verb: "call",
    kind: "resource",
    part: "resources",
    name: "uri",
    uris: ["resources.*.uri"],
    extension: extensionIds.skills,
  },
  {
    method: "skills/get",
    era: "both",
    verb: "call",
    kind: "resource",
    part: "skills",
    name: "uri",
    uris: ["skill.uri", "skill.resources.*.uri"],
    extension: extensionIds.skills,
  },
  { method: "completion/complete", era: "both", verb: "call", kind: "completion", arguments: "params" },
  {
    method: "tasks/get",
    era: "modern",
    verb: "call",
    kind: "task",
    part: "tools",
    name: "taskId",
    uris: blockUris("content.*"),
    extension: extensionIds.tasks,
  },
  {
    method: "tasks/update",
    era: "modern",
    verb: "call",
    kind: "task",
    part: "tools",
    name: "taskId",
    arguments: "inputResponses",
    extension: extensionIds.tasks,
  },
  {
    method: "tasks/cancel",
    era: "modern",
    verb: "call",
    kind: "task",
    part: "tools",
    name: "taskId",
    extension: extensionIds.tasks,
  },
  { method: "subscriptions/listen", era: "modern", verb: "watch", kind: "method" },
  {
    method: "resources/subscribe",
    era: "legacy",
    verb: "watch",
    kind: "resource",
    part: "resources",
    name: "uri",
  },
  {
    method: "resources/unsubscribe",
    era: "legacy",
    verb: "watch",
    kind: "resource",
    part: "resources",
    name: "uri",
  },
  { method: "server/discover", era: "modern", verb: "server", kind: "method" },
  { method: "initialize", era: "legacy", verb: "server", kind: "method" },
  { method: "ping", era: "legacy", verb: "server", kind: "method" },
  { method: "logging/setLevel", era: "legacy", verb: "server", kind: "method" },
];

/** Every method of the protocol that is served here, by its name. A map: callers choose the method, `__proto__` too. */
export const methods: ReadonlyMap<string, Method> = new Map(rows.map((row) => [row.method, row]));

/** The lists of the protocol. */
export const parts: readonly Part[] = rows.flatMap(({ verb, part }) =>
  verb === "list" && part !== undefined ? [part] : [],
);

/** The lists that are announced under their own name. */
export const announced = ["tools", "prompts", "resources", "groups"] as const;
export type Announced = (typeof announced)[number];

/**
 * The list under whose name changes of a list are announced:
 * `notifications/resources/list_changed` is for three lists.
 */
export function announcedAs(part: Part): Announced {
  return part === "templates" || part === "skills" ? "resources" : part;
}

/** The name or URI by which something in a list is used. */
export function keyOf(item: Items[Part]): string {
  if ("uriTemplate" in item) return item.uriTemplate;
  return "uri" in item ? item.uri : item.name;
}

/**
 * The members the protocol gives a meaning to, found in the one scan of a message. A second spelling of any of them in
 * `params` is refused: the request that is carried out must be the one that was authorised (CVE-2026-27896, GHSA-4gph-2hhr-5mwg).
 */
export const messageShape: Shape = defineMessageShape(
  {
    name: true,
    uri: true,
    taskId: true,
    arguments: true,
    ref: { type: true, name: true, uri: true },
    cursor: true,
    requestState: true,
    inputResponses: true,
    task: true,
    requestId: true,
    progressToken: true,
    idempotencyKey: true,
    _meta: {
      progressToken: true,
      [metaKeys.protocolVersion]: true,
      [metaKeys.clientCapabilities]: true,
      [metaKeys.clientInfo]: true,
      [metaKeys.logLevel]: true,
      [metaKeys.idempotencyKey]: true,
    },
  },
  { resultType: true, _meta: true, ttlMs: true, cacheScope: true, structuredContent: true, isError: true },
);
