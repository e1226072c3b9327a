import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

/** Debian's Chromium; `.ci/run` installs it. */
const executablePath = "/usr/bin/chromium";

export const hasChromium: boolean = existsSync(executablePath);
if (!hasChromium)
  console.error(
    `There is no ${executablePath}: the tests of the admin page are skipped. Install the package chromium.`,
  );

/** Without a sandbox, because tests may run as root; and without what Chromium looks up by itself. */
export function openBrowser(): Promise<Browser> {
  const quiet = ["quic", "background-networking", "component-update", "sync", "gpu"].map(
    (name) => `--disable-${name}`,
  );
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--no-first-run", ...quiet] });
}
