import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listRunPlaces, openRunPlace } from "../../packages/junctor/src/attach/find-daemon.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "jr-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("in a folder that is too long for a socket there is no daemon, and none can be made", () => {
  const env = { XDG_RUNTIME_DIR: join(folder, "x".repeat(90)) };
  expect(listRunPlaces(env)).toEqual([]);
  expect(() => openRunPlace("/c.json", env)).toThrow("is too long for a socket");
});

test("a key of another kind is an error that a person can mend, with a code", () => {
  const env = { XDG_RUNTIME_DIR: folder };
  const place = openRunPlace("/c.json", env);
  writeFileSync(join(place.folder, "key"), "short");
  expect(() => listRunPlaces(env)).toThrow(expect.objectContaining({ code: "cli.run_folder" }));
});
