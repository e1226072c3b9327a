import { mkdtempSync, rmSync, statSync, unwatchFile, utimesSync, watchFile, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import { watchConfig } from "./watch-config.ts";

test("an edit is told once, also when the file is looked at later", { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "junctor-watch-"));
  const file = join(folder, "mcp.json");
  writeFileSync(file, "{}");
  const clock = createVirtualClock(0);
  let told = 0;
  const stop = watchConfig(file, () => told++, clock);
  // Node looks at a file once for all who watch it, and tells them in turn: when this is told, so is the other.
  let looks = 0;
  const look = (): void => void looks++;
  watchFile(file, { interval: 3000, persistent: false }, look);
  try {
    for (let edits = 1; edits <= 2; edits++) {
      writeFileSync(file, `{ "edit": ${edits} }`);
      const later = statSync(file).mtimeMs / 1000 + edits;
      utimesSync(file, later, later);
      await expect.poll(() => clock.sleeping).toBe(1);
      await clock.advance(100);
      expect(told).toBe(edits);
      await expect.poll(() => looks, { timeout: 20_000 }).toBe(edits);
      await clock.advance(100);
      expect(told).toBe(edits);
    }
  } finally {
    unwatchFile(file, look);
    stop();
    rmSync(folder, { recursive: true });
  }
});
