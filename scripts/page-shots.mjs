// `node scripts/page-shots.mjs`: takes pictures of the admin page, light, dark and on a phone, into docs/page. Installs Chromium on
// Debian if it is missing.

import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { installChromium } from "./chromium.mjs";
import { reportSetupError, root, setup } from "./setup.mjs";

try {
  setup();
  if (!installChromium()) process.exit(1);
  const folder = join(root, "docs/page");
  mkdirSync(folder, { recursive: true });
  const args = ["node_modules/vitest/vitest.mjs", "run", "--project", "slow", "test/page"];
  const env = { ...process.env, PAGE_SHOTS: folder };
  process.exitCode = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit", env }).status ?? 1;
} catch (error) {
  reportSetupError(error);
  process.exitCode = 1;
}
