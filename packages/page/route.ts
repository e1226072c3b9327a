import { useEffect, useState } from "preact/hooks";

/** Where the page is: `#/tools/NAME?as=ada` is the view `tools`, the rest `NAME`, and a query. */
export interface Route {
  readonly view: string;
  readonly rest: string;
  readonly query: URLSearchParams;
}

/** Views of earlier addresses. */
const moved: { readonly [view: string]: string } = {
  "": "overview",
  problems: "overview",
  charts: "overview",
  parked: "waiting",
};

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", ...rest] = path.split("/");
  return {
    view: (Object.hasOwn(moved, view) ? moved[view] : undefined) ?? view,
    rest: decode(rest.join("/")),
    query: new URLSearchParams(query),
  };
}

/** Decodes a part of the address; one that does not decode, because a person edited it, stays as it is. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

type Query = { readonly [name: string]: string | undefined };

/** The address of a view, without empty members of the query. */
export function hrefOf(view: string, query: Query = {}): string {
  const filled = Object.entries(query).filter((pair): pair is [string, string] => (pair[1] ?? "") !== "");
  const text = new URLSearchParams(filled).toString();
  return `#/${view}${text === "" ? "" : `?${text}`}`;
}

export function go(view: string, query: Query = {}): void {
  location.hash = hrefOf(view, query);
}

/** Changes the query and nothing else, without a step in the history of the browser. */
export function refine({ view, rest, query }: Route, changes: Query): void {
  const path = rest === "" ? view : `${view}/${encodeURIComponent(rest)}`;
  history.replaceState(null, "", hrefOf(path, { ...Object.fromEntries(query), ...changes }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const onHashChange = (): void => setHash(location.hash);
    addEventListener("hashchange", onHashChange);
    return () => removeEventListener("hashchange", onHashChange);
  }, []);
  return parseRoute(hash);
}

export function pathOf(server: string, tab = ""): string {
  return `servers/${encodeURIComponent(server)}${tab === "" ? "" : `/${tab}`}`;
}
