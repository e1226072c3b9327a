import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { root } from "./source-graph.ts";

const folder = join(root, "packages/junctor/dist/page");
const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => readFileSync(join(entry.parentPath, entry.name)));

test("the page is at most 150 KiB, compressed", () => {
  expect(gzipSync(Buffer.concat(files)).length).toBeLessThanOrEqual(150 * 1024);
});

test("the page works offline: its HTML names files of its own only", () => {
  const html = readFileSync(join(folder, "index.html"), "utf8");
  const named = Array.from(html.matchAll(/(?:src|href)="([^"]+)"/g), ([, name = ""]) => name);
  expect(named.length).toBeGreaterThanOrEqual(3);
  for (const name of named)
    expect(readdirSync(join(folder, "assets"))).toContain(name.replace("assets/", ""));
});

test("the page has no inline script or style, which its policy forbids", () => {
  const html = readFileSync(join(folder, "index.html"), "utf8");
  expect(html).not.toMatch(/<style|style=|<script(?![^>]*src=)|\son\w+=/);
});
