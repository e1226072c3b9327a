import { createHash } from "node:crypto";
import type { PageAnswer } from "@junctor/server/internal";

/** Text that is written into a page as it is: made of parts that were escaped. */
interface Markup {
  readonly html: string;
}

const style =
  "body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}" +
  "h1{font-size:1.4rem}dl{display:grid;grid-template-columns:max-content 1fr;gap:.3rem 1rem}dt{color:#555}dd{margin:0;" +
  "overflow-wrap:anywhere}button{font:inherit;padding:.5rem 1.2rem}input{font:inherit;width:100%;box-sizing:border-box;padding:.4rem}" +
  "@media(prefers-color-scheme:dark){body{color:#eee;background:#181818}dt{color:#aaa}a{color:#8bf}}";
const styleHash = createHash("sha256").update(style).digest("base64");

/** The page loads nothing and runs nothing, no other page frames it, and its forms go to this origin only. */
const policy = [
  "default-src 'none'",
  `style-src 'sha256-${styleHash}'`,
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");

const headers = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": policy,
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-store",
} as const;

interface PageParts {
  readonly status?: number;
  readonly title: string;
  readonly body: Markup;
  /** The value of `Set-Cookie`. */
  readonly cookie?: string;
  /** The URL that the page sends the browser to. */
  readonly leadsTo?: string;
  /** Whether it has a form. A browser names the origin of a form only where pages of this origin may know where it comes from. */
  readonly hasForm?: boolean;
}

/** Escapes every value between the parts of a template. */
export function markup(parts: TemplateStringsArray, ...values: readonly (string | Markup)[]): Markup {
  const text = values.map((value) => (typeof value === "string" ? escape(value) : value.html));
  return { html: parts.map((part, index) => part + (text[index] ?? "")).join("") };
}

/** Facts as a list of terms. */
export function toFacts(facts: readonly (readonly [term: string, fact: string])[]): Markup {
  const items = facts.map(([term, fact]) => markup`<dt>${term}</dt><dd>${fact}</dd>`.html);
  return { html: `<dl>${items.join("")}</dl>` };
}

/** A form with one button. */
export function toForm(
  action: string,
  hidden: { readonly [name: string]: string },
  button: string,
  fields: Markup = { html: "" },
): Markup {
  const inputs = Object.entries(hidden).map(
    ([name, value]) => markup`<input type="hidden" name="${name}" value="${value}">`.html,
  );
  return markup`<form method="post" action="${action}">${{ html: inputs.join("") }}${fields}<p><button>${button}</button></p></form>`;
}

export function toPage({
  status = 200,
  title,
  body,
  cookie,
  leadsTo,
  hasForm = false,
}: PageParts): PageAnswer {
  const on =
    leadsTo === undefined ? markup`` : markup`<meta http-equiv="refresh" content="0;url=${leadsTo}">`;
  const page = markup`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>${on}<style>${{ html: style }}</style></head><body><h1>${title}</h1>${body}</body></html>`;
  return {
    status,
    headers: {
      ...headers,
      "referrer-policy": hasForm ? "same-origin" : "no-referrer",
      ...(cookie === undefined ? {} : { "set-cookie": cookie }),
    },
    body: page.html,
  };
}

/** A page that says what went wrong. */
export function toErrorPage(status: number, text: string): PageAnswer {
  return toPage({ status, title: "The account was not connected", body: markup`<p>${text}</p>` });
}

function escape(text: string): string {
  const shown = text.replaceAll(/[\p{Cc}\p{Cf}]/gu, " ");
  return shown.replaceAll(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
