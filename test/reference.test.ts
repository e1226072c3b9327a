import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { pages } from "../scripts/reference-pages.ts";
import { root } from "./source-graph.ts";

test.each(Object.keys(pages))("%s is what node scripts/reference.mjs writes", (page) => {
  expect(readFileSync(join(root, page), "utf8")).toBe(pages[page]);
});
