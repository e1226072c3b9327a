/** Apps: tools with a view (MCP Apps, 2026-01-26). */
import { declaredExtension, extensionIds } from "./extension.ts";
import type { ClientCapabilities, Meta } from "./types.ts";

/** The MIME type of a view. */
export const viewType = "text/html;profile=mcp-app";

/** The member of a tool's `_meta` in which a gateway says whose tool it is, and what that server calls it. */
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

/** Whether a tool is for the model or for views. Without a sound `visibility` it is for both. */
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

/** The origins that a view may use; those that are not named it may not. */
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
