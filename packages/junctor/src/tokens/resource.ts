import { RawJson } from "@junctor/core/json";

/** One endpoint as OAuth sees it (RFC 9728): tokens are made for its URL. */
export interface ProtectedResource {
  readonly url: string;
  readonly metadataUrl: string;
}

/** The resources of a listener: its endpoint, and each path below that as a resource of its own. */
export interface Resources {
  readonly main: ProtectedResource;
  /** The resource that a request to a path is for. */
  at(path: string): ProtectedResource;
  /** The metadata of a resource, if this is the path of it and the resource is served. */
  documentAt(path: string, isServed: (path: string) => boolean): RawJson | undefined;
}

interface ResourceOptions {
  /** The URL that clients know the endpoint by. Nothing here comes from the `Host` of a request, which an attacker may choose. */
  readonly publicUrl: string;
  /** The path of the endpoint at the listener; that of the public URL may be another one. */
  readonly path: string;
  readonly issuers: readonly string[];
  readonly scopes: readonly string[];
}

const wellKnown = "/.well-known/oauth-protected-resource";
/** Most resources whose documents are kept. */
const maxKept = 1024;

export function createResources({ publicUrl, path: own, issuers, scopes }: ResourceOptions): Resources {
  const { origin, pathname } = new URL(publicUrl);
  const publicPath = pathname === "/" ? "" : pathname;
  const main: ProtectedResource = { url: publicUrl, metadataUrl: `${origin}${wellKnown}${publicPath}` };
  const kept = new Map<string, ProtectedResource>();
  const below = (rest: string): ProtectedResource => {
    const known = kept.get(rest);
    if (known !== undefined) return known;
    const slashless = publicUrl.endsWith("/") ? publicUrl.slice(0, -1) : publicUrl;
    const resource = { url: slashless + rest, metadataUrl: main.metadataUrl.replace(/\/$/, "") + rest };
    if (kept.size >= maxKept) kept.clear();
    kept.set(rest, resource);
    return resource;
  };
  const bases = [`${own}/`, "/sse/"];
  const at = (path: string): ProtectedResource => {
    const base = bases.find((each) => path.startsWith(each));
    return base === undefined ? main : below(path.slice(base.length - 1));
  };
  const toDocument = ({ url }: ProtectedResource): RawJson =>
    RawJson.fromValue({
      resource: url,
      authorization_servers: issuers,
      ...(scopes.length === 0 ? {} : { scopes_supported: scopes }),
      bearer_methods_supported: ["header"],
    });
  return {
    main,
    at,
    documentAt: (path, isServed) => {
      if (path !== wellKnown && !path.startsWith(`${wellKnown}/`)) return undefined;
      const suffix = path.slice(wellKnown.length);
      if (suffix === "" || suffix === publicPath || suffix === own) return toDocument(main);
      for (const start of new Set([publicPath, own])) {
        const endpoint = suffix.startsWith(`${start}/`) ? own + suffix.slice(start.length) : undefined;
        if (endpoint !== undefined && isServed(endpoint)) return toDocument(at(endpoint));
      }
      return undefined;
    },
  };
}
