import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, vi } from "vitest";

// Every test file has user folders of its own: what one remembers on disk, another must not find.
const folder = mkdtempSync(join(tmpdir(), "junctor-test-"));
process.env["XDG_CACHE_HOME"] = join(folder, "cache");
process.env["XDG_STATE_HOME"] = join(folder, "state");
process.env["XDG_RUNTIME_DIR"] = join(folder, "run");

afterAll(() => {
  // The next file may be run by this process, and vitest puts these back only before a test.
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  rmSync(folder, { recursive: true, force: true });
});
