// Debian's Chromium, for the scripts that open the admin page.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

const executable = "/usr/bin/chromium";

/** Installs Chromium if it is missing. Returns false, and prints what to do, if that is not possible. */
export function installChromium() {
  if (existsSync(executable)) return true;
  const run = (...args) => spawnSync("apt-get", args, { stdio: "inherit" }).status === 0;
  const isThere = process.getuid?.() === 0 && run("update") && run("install", "-y", "chromium");
  if (!isThere || !existsSync(executable)) {
    console.error(
      `There is no ${executable}. As root on Debian: apt-get update && apt-get install -y chromium`,
    );
    return false;
  }
  return true;
}
