import type { ChildProcess } from "node:child_process";
import { statSync } from "node:fs";
import { ConnectError, type ConnectKind } from "@junctor/core/errors";
import type { GuardedChild } from "./guardian.ts";

/** A program that speaks MCP on its standard input and output. */
export interface ChildCommand {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to the few variables every child gets. */
  readonly env?: { readonly [name: string]: string };
  readonly cwd?: string;
}

/** The command as a person would type it. */
export function describeCommand({ command, args = [] }: ChildCommand): string {
  return [command, ...args]
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word)))
    .join(" ");
}

/**
 * Starts a child. Rejects with a `ConnectError` that says what is missing. Of the reasons for which a program cannot be
 * started, Node throws some and emits the others.
 */
export async function startChild(
  start: () => GuardedChild<ChildProcess>,
  command: ChildCommand,
): Promise<GuardedChild<ChildProcess>> {
  try {
    const guarded = start();
    await new Promise((resolve, reject) => {
      guarded.child.once("spawn", resolve);
      guarded.child.once("error", reject);
    });
    return guarded;
  } catch (error) {
    const kind = kindOf(error as Error, command);
    const reason = describeKind(kind, error as Error, command);
    throw new ConnectError(describeCommand(command), reason, { kind, cause: error });
  }
}

/** The system says the same of a program and of a folder that does not exist, so the folder is looked at. */
function kindOf({ code }: NodeJS.ErrnoException, { cwd }: ChildCommand): ConnectKind {
  if (cwd !== undefined && (code === "ENOENT" || code === "ENOTDIR") && !isFolder(cwd)) return "no_folder";
  if (code === "ENOENT") return "no_program";
  return code === "EACCES" ? "not_executable" : "other";
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // It does not exist, or lies in something that is no folder.
  }
}

function describeKind(kind: ConnectKind, { message }: Error, { command, cwd }: ChildCommand): string {
  const program = JSON.stringify(command);
  if (kind === "no_folder") return `there is no folder ${JSON.stringify(cwd)} to run ${program} in`;
  if (kind === "no_program") return `there is no program ${program} here`;
  if (kind !== "not_executable") return message;
  return `${program} may not be run: it is a folder, or a file that is not executable`;
}
