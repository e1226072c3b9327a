// Which files of the repository are pages of the site, and where.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { root } from "./setup.mjs";

/** The page that links all others. */
export const index = "docs/README.md";

/** The folder whose files the site serves unchanged. Links to other files of the repository become plain text there. */
export const served = "docs/monitoring";

/** Path in the repository → path on the site. An example is a page with its program. */
export function sitePages() {
  const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md"))
    .map((file) => `docs/${file.replaceAll("\\", "/")}`);
  const examples = readdirSync(join(root, "examples")).map((file) => `examples/${file}`);
  const others = ["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "proof/README.md"];
  const places = new Map([...docs, ...others].map((file) => [file, file.replace(/^docs\//, "")]));
  for (const file of examples) places.set(file, file.replace(/\.mjs$/, ".md"));
  places.set(index, "index.md");
  places.set("README.md", "readme.md");
  return places;
}
