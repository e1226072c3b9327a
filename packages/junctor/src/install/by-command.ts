import { spawnSync } from "node:child_process";
import { readClientFile, readSection, sha256Of, writeClientFile } from "./client-file.ts";
import type { ClientProgram } from "./clients.ts";
import { ourName } from "./entry-for-client.ts";
import type { InstallPlan } from "./install.ts";
import { forgetInstalled, type LedgerEntry, noteInstalled } from "./ledger.ts";
import { SpliceError } from "./splice-error.ts";

/**
 * Installs into a client whose file only its own program may edit: Claude Code rewrites `~/.claude.json` all the time, and an edit
 * beside that is lost, or breaks it. Throws a `SpliceError` that says what to run when the program is missing.
 */
export function installByCommand({ client, file, config, entry, removed, replaced }: InstallPlan): void {
  if (config.text !== config.file.text) writeClientFile(config.file, config.text);
  const takeBack = noteInstalled({
    client: client.id,
    file: file.path,
    existed: file.exists,
    // There is nothing to restore byte for byte: the file has changed by itself since.
    backup: "",
    sha256Before: sha256Of(file.text),
    sha256After: "",
    removed,
    ...(replaced === undefined ? {} : { replaced }),
  });
  const entryText = JSON.stringify({ type: "stdio", ...entry });
  try {
    if (replaced !== undefined) run(client, file.path, ["mcp", "remove", "-s", "user", ourName]);
    run(client, file.path, ["mcp", "add-json", "-s", "user", ourName, entryText]);
  } catch (error) {
    takeBack();
    throw error;
  }
  for (const name of Object.keys(removed)) run(client, file.path, ["mcp", "remove", "-s", "user", name]);
}

/** Takes our entry out by the client's own program, and puts back the servers that are missing. */
export async function uninstallByCommand(client: ClientProgram, entry: LedgerEntry): Promise<void> {
  const { file, removed, replaced } = entry;
  const servers = await readSection(client, file, readClientFile(file).text);
  if (Object.hasOwn(servers, ourName)) run(client, file, ["mcp", "remove", "-s", "user", ourName]);
  const missing = Object.entries(removed).filter(([name]) => !Object.hasOwn(servers, name));
  const back = replaced === undefined ? missing : [...missing, [ourName, replaced] as const];
  for (const [name, value] of back)
    run(client, file, ["mcp", "add-json", "-s", "user", name, JSON.stringify(value)]);
  forgetInstalled(file);
}

function run({ command = "", title }: ClientProgram, file: string, args: readonly string[]): void {
  const { error, status, stderr } = spawnSync(command, args, { encoding: "utf8", timeout: 60_000 });
  if (error !== undefined)
    throw new SpliceError(
      file,
      `only ${title} itself may edit it, and ${command} cannot be run (${error.message}): install ${command}, or put it into the PATH, and try again`,
    );
  if (status !== 0)
    throw new SpliceError(file, `${command} ${args.slice(0, 5).join(" ")} failed: ${stderr.trim()}`);
}
