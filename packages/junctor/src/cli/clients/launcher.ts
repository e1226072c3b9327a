import { chmodSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { homeFolder } from "../../attach/index.ts";
import { writePrivateFile } from "../../config/index.ts";
import type { Launcher } from "../../install/index.ts";
import { junctor } from "../../invocation/index.ts";

const main = (): string => fileURLToPath(new URL("../cli/main.js", import.meta.url));

/** How clients start us. On Windows a script would need a shell, so it is Node itself there. */
export function describeLauncher(): Launcher {
  if (process.platform === "win32") return { command: process.execPath, args: [main()] };
  return { command: join(homeFolder(), "bin", "junctor"), args: [] };
}

/**
 * Writes the launcher: it knows the Node it was installed with, and adds the search path of this terminal behind that of the client,
 * because programs with windows are started with a short one, in which `npx` is not found.
 */
export function writeLauncher(): void {
  if (process.platform === "win32") return;
  const { command } = describeLauncher();
  const lines = [
    "#!/bin/sh",
    `# Written by "${junctor("install")}".`,
    `node=${quote(process.execPath)}`,
    '[ -x "$node" ] || node=node',
    `PATH="$PATH":${quote(process.env["PATH"] ?? "")}`,
    "export PATH",
    `exec "$node" ${quote(main())} "$@"`,
    "",
  ];
  writePrivateFile(command, lines.join("\n"), 0o700);
  chmodSync(command, 0o700);
}

/** npx removes what it downloaded, sooner or later. */
export function warnOfPlace(): string | undefined {
  return /[/\\]_npx[/\\]/.test(main())
    ? "junctor runs from the cache of npx, which is emptied now and then: run npm install --global with its folder or tarball, then install again"
    : undefined;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
