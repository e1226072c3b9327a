import { useEffect, useState } from "preact/hooks";

/** Where the page is: `#/tools/NAME?as=ada` is the view `tools`, the rest `NAME`, and a query. */
export interface Route {
  readonly view: string;
  readonly rest: string;
  readonly query: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", ...rest] = path.split("/");
  return {
    view: view === "" ? "servers" : view,
    rest: decode(rest.join("/")),
    query: new URLSearchParams(query),
  };
}

/** Someone may edit the address into something that does not decode. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Goes to a view; members of the query that are empty are left out. */
export function go(view: string, query: { readonly [name: string]: string } = {}): void {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  const text = new URLSearchParams(Object.fromEntries(given)).toString();
  location.hash = `#/${view}${text === "" ? "" : `?${text}`}`;
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const onMove = (): void => setHash(location.hash);
    addEventListener("hashchange", onMove);
    return () => removeEventListener("hashchange", onMove);
  }, []);
  return parseRoute(hash);
}
