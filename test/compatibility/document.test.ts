import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../source-graph.ts";
import { officialTests, officialTitle, renderPage } from "./page.ts";

test("docs/evidence/compatibility.md says what the tests show when all of them pass", () => {
  const page = readFileSync(join(root, "docs/evidence/compatibility.md"), "utf8");
  expect(page, "run node proof/conformance/compatibility.mjs").toBe(renderPage(() => true));
});

test("the page looks for the tests of the official SDKs by the titles they have", () => {
  const source = readFileSync(join(root, "test/bridge/official.test.ts"), "utf8");
  const titles = [officialTitle("$client", "$server", "$front", "$back"), ...officialTests];
  for (const title of titles) expect(source).toContain(`"${title}"`);
});
