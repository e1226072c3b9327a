import { RpcError } from "../errors/index.ts";
import type { ClientCapabilities, Meta } from "./types.ts";

/** The extensions that Junctor implements, by their ids on the wire. */
export const extensionIds = {
  tasks: "io.modelcontextprotocol/tasks",
  ui: "io.modelcontextprotocol/ui",
  skills: "io.modelcontextprotocol/skills",
  groups: "io.modelcontextprotocol/groups",
} as const;

/** The settings of extensions by id; `{}` says that there are no settings. */
export type Extensions = { readonly [id: string]: object };

/**
 * The settings that a caller declared for an extension; undefined when it did not declare it. Only an object
 * declares it; a modern caller does so in each request. Ids that are not known here are ignored.
 */
export function declaredExtension(
  { extensions }: Pick<ClientCapabilities, "extensions">,
  id: string,
): object | undefined {
  if (extensions === undefined || extensions === null || !Object.hasOwn(extensions, id)) return undefined;
  const settings: unknown = extensions[id];
  const isObject = typeof settings === "object" && settings !== null && !Array.isArray(settings);
  return isObject ? settings : undefined;
}

/** The error for a request that cannot be served unless its sender declares an extension. */
export function missingExtension(id: string): RpcError {
  return new RpcError("rpc.missing_capability", `This request needs the client extension ${id}`, {
    data: { requiredCapabilities: { extensions: { [id]: {} } } },
  });
}

const withoutTasksOf = new WeakMap<ClientCapabilities, ClientCapabilities>();

/** Capabilities without tasks, for a provider that has none: it must not start a task that its caller cannot reach. */
export function withoutTasks(capabilities: ClientCapabilities): ClientCapabilities {
  if (declaredExtension(capabilities, extensionIds.tasks) === undefined) return capabilities;
  let rest = withoutTasksOf.get(capabilities);
  if (rest === undefined) {
    const { [extensionIds.tasks]: _, ...extensions } = capabilities.extensions ?? {};
    withoutTasksOf.set(capabilities, (rest = { ...capabilities, extensions }));
  }
  return rest;
}

const withTasksOf = new WeakMap<ClientCapabilities, ClientCapabilities>();

/** Capabilities with tasks, for requests about tasks that are followed on behalf of a caller. */
export function withTasks(capabilities: ClientCapabilities): ClientCapabilities {
  if (declaredExtension(capabilities, extensionIds.tasks) !== undefined) return capabilities;
  let whole = withTasksOf.get(capabilities);
  if (whole === undefined) {
    whole = { ...capabilities, extensions: { ...capabilities.extensions, [extensionIds.tasks]: {} } };
    withTasksOf.set(capabilities, whole);
  }
  return whole;
}

/**
 * The extensions of a caller that a gateway declares on its behalf. They decide what a server
 * lists, not what it may ask.
 */
export interface Declared {
  readonly extensions: Extensions;
  /** The same for callers that declare the same; empty for those that declare nothing. */
  readonly key: string;
}

export const nothingDeclared: Declared = { extensions: {}, key: "" };

/**
 * Extensions between a caller and a server; a gateway passes the settings on. Tasks are not among
 * them: each hop has its own.
 */
const endToEnd: readonly string[] = [extensionIds.ui, extensionIds.skills];

/** The most characters passed on for one caller. Longer settings count as not declared. */
const maxLength = 4096;

const known = new WeakMap<object, WeakMap<readonly string[], Declared>>();
const noneOpened: readonly string[] = [];

/**
 * The extensions of a caller that may be declared to a server on its behalf: those that pass from end to end, and those
 * that the config opened for the server. No more than the caller declared itself, with the settings that it gave.
 */
export function toDeclared(
  { extensions }: Pick<ClientCapabilities, "extensions">,
  opened: readonly string[] = noneOpened,
): Declared {
  if (typeof extensions !== "object" || extensions === null) return nothingDeclared;
  let byOpened = known.get(extensions);
  if (byOpened === undefined) known.set(extensions, (byOpened = new WeakMap()));
  let declared = byOpened.get(opened);
  if (declared === undefined) byOpened.set(opened, (declared = readDeclared(extensions, opened)));
  return declared;
}

function readDeclared(extensions: Extensions, opened: readonly string[]): Declared {
  const passed = [...endToEnd, ...opened].toSorted().flatMap((id) => {
    const settings = declaredExtension({ extensions }, id);
    return settings === undefined ? [] : [[id, inOrder(settings)] as const];
  });
  if (passed.length === 0) return nothingDeclared;
  const sorted = Object.fromEntries(passed) as Extensions;
  const key = JSON.stringify(sorted);
  return key.length > maxLength ? nothingDeclared : { extensions: sorted, key };
}

/** The same JSON with the members of objects in order, so that equal settings are written alike. */
function inOrder(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(inOrder);
  const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, inOrder(member)]));
}

/** Apps: tools with a view (MCP Apps, 2026-01-26). */

/** The MIME type of a view. */
export const viewType = "text/html;profile=mcp-app";

/** The member of a tool's `_meta` in which a gateway names the tool's server, and the name there. */
export const originKey = "dev.junctor/origin";

/** Who may use a tool: the model, the views of its server, or both. */
export type Visibility = "model" | "app";

/** What lists a tool's view: a tool, or the result of a call. */
interface HasMeta {
  readonly _meta?: Meta | undefined;
}

/** The older form of the member that names a view; tools have one form, the other or both. */
const flatKey = "ui/resourceUri";
const maxUriLength = 2048;

/** The URI of the view of a tool; undefined for a tool without one. */
export function viewUriOf({ _meta }: HasMeta): string | undefined {
  if (_meta === undefined) return undefined;
  const uri = uiOf(_meta)?.["resourceUri"] ?? _meta[flatKey];
  const isView = typeof uri === "string" && uri.startsWith("ui://") && uri.length <= maxUriLength;
  return isView ? uri : undefined;
}

/** The same `_meta` with another view in each form it has, or with none. */
export function withViewUri(meta: Meta, uri: string | undefined): Meta {
  const { [flatKey]: flat, ui, ...others } = meta;
  const { resourceUri: _, ...settings } = uiOf(meta) ?? {};
  const hasNested = uiOf(meta)?.["resourceUri"] !== undefined;
  const nested = hasNested && uri !== undefined ? { ...settings, resourceUri: uri } : settings;
  return {
    ...others,
    ...(ui === undefined ? {} : { ui: uiOf(meta) === undefined ? ui : nested }),
    ...(flat === undefined || uri === undefined ? {} : { [flatKey]: uri }),
  };
}

/** Whether a tool is for views alone; a host keeps such a tool from its model. */
export function isAppOnly(tool: HasMeta): boolean {
  return !isVisibleTo(tool, "model") && isVisibleTo(tool, "app");
}

/** Whether a tool is for the model or for views. Without a valid `visibility` it is for both. */
export function isVisibleTo({ _meta }: HasMeta, who: Visibility): boolean {
  const visibility = _meta === undefined ? undefined : uiOf(_meta)?.["visibility"];
  return !Array.isArray(visibility) || visibility.length === 0 || visibility.includes(who);
}

/** Whether a caller declared that it shows views. */
export function canShowViews(capabilities: Pick<ClientCapabilities, "extensions">): boolean {
  if (capabilities.extensions === undefined) return false;
  const settings: { readonly mimeTypes?: unknown } | undefined = declaredExtension(
    capabilities,
    extensionIds.ui,
  );
  return Array.isArray(settings?.mimeTypes) && settings.mimeTypes.includes(viewType);
}

function uiOf(meta: Meta): { readonly [member: string]: unknown } | undefined {
  const ui = meta["ui"];
  return typeof ui === "object" && ui !== null && !Array.isArray(ui)
    ? (ui as { readonly [member: string]: unknown })
    : undefined;
}

/** The origins that a view may use, and no others. */
export interface ViewCsp {
  /** For requests: `fetch`, WebSocket, EventSource. */
  readonly connectDomains?: readonly string[];
  /** For images, styles, scripts, fonts and media. */
  readonly resourceDomains?: readonly string[];
  readonly frameDomains?: readonly string[];
  readonly baseUriDomains?: readonly string[];
}

/** What a view asks of the browser; `{}` asks for it. */
export interface ViewPermissions {
  readonly camera?: object;
  readonly microphone?: object;
  readonly geolocation?: object;
  readonly clipboardWrite?: object;
}
