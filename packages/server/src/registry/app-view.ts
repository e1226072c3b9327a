import { NotFoundError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import { type ViewCsp, type ViewPermissions, viewType, type Icon, type Resource } from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import {
  createChanges,
  emptyListing,
  Listing,
  type Provider,
  toResourceContents,
} from "@junctor/core/provider";
import { describeValue } from "@junctor/core/schema";
import { offering, resourceOffers } from "./members.ts";

/** A view of a tool: a page that a host shows beside the result. */
export interface AppViewSpec {
  /** Begins with `ui://`. */
  readonly uri: string;
  /** The page, or a function that makes it for each read. */
  readonly html: string | (() => string | Promise<string>);
  readonly name?: string;
  readonly title?: string;
  readonly description?: string;
  readonly icons?: readonly Icon[];
  readonly csp?: ViewCsp;
  readonly permissions?: ViewPermissions;
  /** The dedicated origin that the host should give the view. */
  readonly domain?: string;
  readonly prefersBorder?: boolean;
}

/** A view that was checked. Made by {@link defineView}. */
export interface AppView {
  readonly resource: Resource;
  readonly html: AppViewSpec["html"];
}

const specKeys: KeysOf<AppViewSpec> = {
  ...keys("uri html name title description icons csp permissions domain prefersBorder"),
};
const cspKeys: KeysOf<ViewCsp> = keys("connectDomains resourceDomains frameDomains baseUriDomains");
const permissionKeys: KeysOf<ViewPermissions> = keys("camera microphone geolocation clipboardWrite");

/**
 * A view for `registry.register(name, { view }, handler)`. Throws a `TypeError` for a URI that is not `ui://…`, a page that is neither text nor a function, and
 * misspelt keys.
 *
 * @example
 * const view = defineView({ uri: "ui://clock/face.html", html: "<!doctype html>…" });
 * registry.register("get-time", { view }, () => "12:00");
 */
export function defineView(spec: AppViewSpec): AppView {
  const { uri, html, csp, permissions, domain, prefersBorder, ...shown } = spec;
  const what = `View ${JSON.stringify(uri)}`;
  assertKnownKeys(what, spec, specKeys);
  if (csp !== undefined) assertKnownKeys(`${what}: csp`, csp, cspKeys);
  if (permissions !== undefined) assertKnownKeys(`${what}: permissions`, permissions, permissionKeys);
  if (typeof uri !== "string" || !/^ui:\/\/[^\s/]+\S*$/.test(uri))
    throw new TypeError(`${what}: the uri must be one such as ui://clock/face.html`);
  if (typeof html !== "function" && (typeof html !== "string" || html.trim() === ""))
    throw new TypeError(
      `${what}: html must be a page or a function that makes one, but is ${describeValue(html)}`,
    );
  const ui = Object.fromEntries(
    Object.entries({ csp, permissions, domain, prefersBorder }).filter(([, value]) => value !== undefined),
  );
  const resource: Resource = {
    uri,
    name: shown.name ?? uri.slice(uri.lastIndexOf("/") + 1),
    ...shown,
    mimeType: viewType,
    ...(Object.keys(ui).length === 0 ? {} : { _meta: { ui } }),
  };
  return Object.freeze({ resource: Object.freeze(resource), html });
}

/** The views of the tools of a registry, as resources. */
interface ViewFiles extends Provider {
  /** Throws for another view at the same URI. */
  add(view: AppView): void;
}

export function createViewFiles(): ViewFiles {
  const views = new Map<string, AppView>();
  const changes = createChanges();
  let listed: Listing<Resource> = emptyListing;
  const viewAt = (uri: string): AppView => {
    const view = views.get(uri);
    if (view === undefined) throw new NotFoundError("resource", uri);
    return view;
  };
  return {
    add: (view) => {
      const { uri } = view.resource;
      if (views.get(uri) === view) return;
      if (views.has(uri))
        throw new TypeError(`Another view has the URI ${uri}: define a view once, and share it`);
      views.set(uri, view);
      listed = new Listing(Object.freeze(Array.from(views.values(), ({ resource }) => resource)));
      changes.report({ part: "resources" });
    },
    list: (part) => (part === "resources" ? (listed as never) : emptyListing),
    call: async ({ name }) => {
      const { html, resource } = viewAt(name);
      const page = typeof html === "function" ? await html() : html;
      if (typeof page !== "string")
        throw new TypeError(
          `View ${JSON.stringify(name)}: html() gave ${describeValue(page)}; it must give a page, a string`,
        );
      const { _meta } = resource;
      const content = {
        ...toResourceContents(name, page, viewType),
        ...(_meta === undefined ? {} : { _meta }),
      };
      return { kind: "complete", result: RawJson.fromValue({ contents: [content] }) };
    },
    watch: ({ name }) => {
      viewAt(name);
      return () => {};
    },
    offers: () => (views.size === 0 ? noOffers : resourceOffers),
    onChange: changes.onChange,
  };
}

const noOffers = offering();
