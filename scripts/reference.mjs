// Writes the reference pages that are derived from tables in the source: node scripts/reference.mjs
// A test fails if a page differs from what this writes.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runnerImport } from "vite";
import { root } from "./setup.mjs";

// Node 20 cannot load TypeScript itself.
const file = join(root, "scripts/reference-pages.ts");
const { pages } = (await runnerImport(file, { configFile: false, logLevel: "error" })).module;
for (const [page, text] of Object.entries(pages)) writeFileSync(join(root, page), text);
