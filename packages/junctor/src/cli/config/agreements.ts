import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { guardVariable } from "@junctor/client/internal";
import { listLaunches, readPrivateFile, stateFolder, writePrivateFile } from "../../config/index.ts";
import {
  describeError,
  note,
  toRows,
  toSafeLine,
  UsageError,
  watchInterrupt,
  withTerminal,
} from "../terminal/index.ts";

/** A config that a person agreed to: where it is, and the hash of what it held. */
interface AgreedConfig {
  readonly path: string;
  readonly sha256: string;
}

/** The oldest agreements are forgotten beyond this number. */
const maxAgreements = 200;
const maxBytes = 1024 * 1024;

/** Whether a person agreed to use this file with this text. */
export function isAgreed(file: string, text: string): boolean {
  const { path, sha256 } = toAgreement(file, text);
  return readAgreements().some((agreed) => agreed.path === path && agreed.sha256 === sha256);
}

/** Remembers that a person agreed. Another text of the same file is no longer agreed to. Throws the system's error. */
export function rememberAgreement(file: string, text: string): void {
  const agreement = toAgreement(file, text);
  const others = readAgreements().filter(({ path }) => path !== agreement.path);
  const agreed = [agreement, ...others].slice(0, maxAgreements);
  writePrivateFile(agreementsFile(), `${JSON.stringify({ agreed }, undefined, 2)}\n`);
}

const agreementsFile = (): string => join(stateFolder(), "agreed-configs.json");

function toAgreement(file: string, text: string): AgreedConfig {
  return { path: realpathSync(resolve(file)), sha256: createHash("sha256").update(text).digest("hex") };
}

/** A file that cannot be read or is damaged holds no agreement: the person is asked again. */
function readAgreements(): readonly AgreedConfig[] {
  const text = readPrivateFile(agreementsFile(), maxBytes);
  if (text === undefined) return [];
  try {
    const { agreed } = JSON.parse(text) as { readonly agreed?: unknown };
    return Array.isArray(agreed) ? agreed.filter(isAgreement) : [];
  } catch {
    return [];
  }
}

function isAgreement(value: unknown): value is AgreedConfig {
  if (typeof value !== "object" || value === null) return false;
  const { path, sha256 } = value as { readonly [key: string]: unknown };
  return typeof path === "string" && typeof sha256 === "string";
}

/** A config that was found in the current folder, and not named. */
interface FoundConfig {
  readonly file: string;
  readonly text: string;
}

/**
 * Makes sure that a person agreed to a config that was found: a folder that was downloaded may have one that starts anything.
 * Asks on the terminal, once for each text of the file; `mayAsk` is false where the standard input is not the person's.
 * Throws a {@link UsageError} when there is no agreement.
 */
export async function assertAgreed(found: FoundConfig, mayAsk: boolean): Promise<void> {
  const { file, text } = found;
  const instead = `write --config ${file} to use it`;
  // A config that names us without a config of our own would start us again and again.
  if (process.env[guardVariable] !== undefined)
    throw new UsageError(`${file} was found here by a gateway that another gateway started; ${instead}`);
  if (isAgreed(file, text)) return;
  if (!mayAsk || !process.stdin.isTTY || !process.stderr.isTTY)
    throw new UsageError(
      `${file} was found here, and you have not agreed to start what it names; ${instead}`,
    );
  await note(describe(found));
  if (!(await isAccepted("Use it, now and while it stays as it is? (y/N): ")))
    throw new UsageError(`${file} is not used; ${instead}`);
  try {
    rememberAgreement(file, text);
  } catch (error) {
    await note(`junctor: warning: the answer cannot be remembered: ${describeError(error)}\n`);
  }
}

/** Asks a person at the terminal. */
export async function isAccepted(question: string): Promise<boolean> {
  using interruption = watchInterrupt();
  const answer = await withTerminal(interruption.interrupt, interruption.signal, (ask) => ask(question));
  return /^y(es)?$/i.test(answer?.trim() ?? "");
}

/** What the config would run or reach, as the file writes it. */
function describe({ file, text }: FoundConfig): string {
  const rows = listLaunches(file, text).map((launch) => [launch.name, launch.text].map(toSafeLine));
  const lines = toRows(rows).map((row) => `  ${row}`);
  const head = `Found ${toSafeLine(resolve(file))}, which you have not used like this before. It names:`;
  return [head, "", ...(lines.length === 0 ? ["  no servers"] : lines), "", ""].join("\n");
}
