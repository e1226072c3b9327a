// The site is docs/ as it is: pages, their order and their titles come from docs/README.md, so nothing is listed twice.
// scripts/docs.mjs puts the pages into the folder `pages`, beside which Vue is found.

import { cpSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";
import { toHeadingId } from "../../scripts/heading-id.mjs";
import { index, served, sitePages } from "../../scripts/site-pages.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const pages = join(root, "site/pages");
/** Path in the repository → path on the site, and back. */
const places = sitePages();
const sources = new Map([...places].map(([source, place]) => [place, source]));

/** Whole words and their beginnings; a long table that has a word is as good as a short text; settings first, figures last. */
const ranking = {
  fuzzy: false,
  bm25: { k: 1.2, b: 0.1, d: 0.5 },
  boostDocument: (id) => (id.includes("/reference/config") ? 3 : id.includes("/evidence/") ? 0.3 : 1),
};

export default defineConfig({
  title: "Junctor",
  description: "One endpoint for all your MCP servers, and the toolkit and client it is made of.",
  srcDir: "pages",
  outDir: "dist",
  cacheDir: "node_modules/.vitepress-cache",
  markdown: {
    anchor: { slugify: toHeadingId },
    languageAlias: { cel: "js", console: "shellsession" },
    config: (md) => md.core.ruler.push("links-of-the-repository", resolveLinks),
  },
  head: [["link", { rel: "icon", href: "/icon.svg", type: "image/svg+xml" }]],
  themeConfig: {
    logo: "/icon.svg",
    search: { provider: "local", options: { miniSearch: { searchOptions: ranking } } },
    nav: [
      { text: "Guides", link: "/#guides" },
      { text: "Reference", link: "/#reference" },
      { text: "How it is built", link: "/#how-it-is-built" },
      { text: "Evidence", link: "/#evidence" },
    ],
    sidebar: readSidebar(),
    outline: [2, 3],
    externalLinkIcon: true,
  },
  vite: {
    build: { chunkSizeWarningLimit: 4_000 },
  },
  buildEnd: ({ outDir }) =>
    cpSync(join(root, served), join(outDir, served.replace("docs/", "")), { recursive: true }),
});

/** Links of a page are relative to its file in the repository, so that they hold in a plain view of that. */
function resolveLinks(state) {
  const from = sources.get(relative(pages, state.env.path).split(sep).join("/"));
  for (const token of state.tokens.flatMap(({ children }) => children ?? [])) {
    const href = token.type === "link_open" ? token.attrGet("href") : null;
    if (href === null || /^(?:[a-z]+:|#)/.test(href)) continue;
    const [path, hash] = href.split("#");
    const target = posix.join(posix.dirname(from), path);
    const place = places.get(target) ?? places.get(posix.join(target, "README.md"));
    if (place !== undefined) token.attrSet("href", `/${place}${hash === undefined ? "" : `#${hash}`}`);
    else if (!target.startsWith(`${served}/`)) unlink(state, token);
    else {
      token.attrSet("href", `/${target.replace("docs/", "")}`);
      token.attrSet("target", "_blank");
    }
  }
}

/** A link to source code: on the site there is none. */
function unlink(state, open) {
  for (const { children } of state.tokens) {
    const at = children?.indexOf(open) ?? -1;
    if (at === -1) continue;
    const close = children.findIndex((token, index) => index > at && token.type === "link_close");
    for (const token of [open, children[close]]) {
      token.type = `span_${token === open ? "open" : "close"}`;
      token.tag = "span";
      token.attrs = null;
    }
  }
}

/** The sections of docs/README.md, as VitePress wants its sidebar: what a list links, under the bold line above the list. */
function readSidebar() {
  const [, ...sections] = readFileSync(join(root, index), "utf8").split(/^## /m);
  return sections.map((section) => {
    const items = [];
    let group = items;
    for (const line of section.split("\n")) {
      const heading = /^\*\*(.+)\*\*$/.exec(line)?.[1];
      if (heading !== undefined) items.push({ text: heading, collapsed: true, items: (group = []) });
      if (/^(?:-|\d+\.) /.test(line)) group.push(...linksOf(line));
    }
    return { text: section.slice(0, section.indexOf("\n")), items };
  });
}

function linksOf(line) {
  return [...line.matchAll(/\[([^\]]+)\]\(([^)#]+)/g)].flatMap(([, name, path]) => {
    const place = places.get(posix.join(dirname(index), path));
    const text = name.startsWith("`") ? name.slice(1, -1) : name.slice(0, 1).toUpperCase() + name.slice(1);
    return place === undefined ? [] : [{ text, link: `/${place.replace(/\.md$/, ".html")}` }];
  });
}
