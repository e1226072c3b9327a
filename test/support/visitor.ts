import type { IdentityProvider } from "./identity-provider.ts";

/** A page as its visitor sees it. */
export interface SeenPage {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
  readonly url: string;
  /** The fields of its form, as far as they are filled in. */
  readonly fields: { readonly [name: string]: string };
  /** Where it leads by itself. */
  readonly leadsTo: string | undefined;
}

/** A browser without scripts: it keeps cookies, sends forms and follows where pages lead. */
export interface Visitor {
  readonly cookies: Map<string, string>;
  open(url: string): Promise<SeenPage>;
  /** Sends the form of a page; the fields are added to those that it has. */
  send(page: SeenPage, fields?: { readonly [name: string]: string }, headers?: object): Promise<SeenPage>;
  /** Goes where a page leads, signs in there, and gives the page that the sign-in leads back to. */
  signIn(page: SeenPage, idp: IdentityProvider): Promise<SeenPage>;
}

/** `more` are headers of every request; `send` is another way to send them than the usual. */
export function createVisitor(
  more: { readonly [name: string]: string } = {},
  send: typeof fetch = fetch,
): Visitor {
  const cookies = new Map<string, string>();
  const go = async (
    url: string,
    init: { readonly method?: string; readonly body?: string; readonly headers?: object } = {},
  ): Promise<SeenPage> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { ...more, ...(cookie === "" ? {} : { cookie }), ...init.headers };
    const reply = await send(url, { ...init, headers, redirect: "manual" });
    for (const each of reply.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(each) ?? [];
      if (value === "") cookies.delete(name);
      else cookies.set(name, value);
    }
    const text = await reply.text();
    const fields = [...text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)];
    const leadsTo = /http-equiv="refresh" content="0;url=([^"]*)"/.exec(text)?.[1];
    return {
      status: reply.status,
      text,
      headers: reply.headers,
      url,
      fields: Object.fromEntries(fields.map(([, name = "", value = ""]) => [name, value])),
      leadsTo: leadsTo?.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code))),
    };
  };
  return {
    cookies,
    open: (url) => go(url),
    send: (page, fields = {}, headers = {}) => {
      const action = /action="([^"]*)"/.exec(page.text)?.[1] ?? "";
      const target = new URL(action, page.url);
      return go(target.href, {
        method: "POST",
        body: new URLSearchParams({ ...page.fields, ...fields }).toString(),
        headers: {
          "content-type": "application/x-www-form-urlencoded",
          origin: target.origin,
          ...headers,
        },
      });
    },
    signIn: async (page, idp) => go(await idp.browse(page.leadsTo ?? "")),
  };
}

/** Connects an account with a key, from the link to the last page. */
export async function connectByKey(
  link: string,
  key: string,
  idp: IdentityProvider,
  visitor: Visitor = createVisitor(),
): Promise<SeenPage> {
  const proven = await visitor.send(await visitor.open(link), { key });
  return visitor.signIn(await visitor.send(proven), idp);
}
