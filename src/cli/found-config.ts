import { resolve } from "node:path";
import { listLaunches } from "../gateway/config/as-written.ts";
import { guardVariable } from "../transports/guardian.ts";
import { isAgreed, rememberAgreement } from "./agreements.ts";
import { describeError } from "./describe-error.ts";
import { watchInterrupt } from "./interrupt.ts";
import { note } from "./print.ts";
import { toRows } from "./rows.ts";
import { withTerminal } from "./terminal-lines.ts";
import { toSafeLine } from "./terminal-text.ts";
import { UsageError } from "./usage-error.ts";

/** A config that was found in the current folder, and not named. */
export interface FoundConfig {
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
  if (!(await isAccepted())) throw new UsageError(`${file} is not used; ${instead}`);
  try {
    rememberAgreement(file, text);
  } catch (error) {
    await note(`junctor: warning: the answer cannot be remembered: ${describeError(error)}\n`);
  }
}

async function isAccepted(): Promise<boolean> {
  using interruption = watchInterrupt();
  const answer = await withTerminal(interruption.interrupt, interruption.signal, (ask) =>
    ask("Use it, now and while it stays as it is? (y/N): "),
  );
  return /^y(es)?$/i.test(answer?.trim() ?? "");
}

/** What the config would run or reach, as the file writes it. */
function describe({ file, text }: FoundConfig): string {
  const rows = listLaunches(text).map((launch) => [launch.name, launch.text].map(toSafeLine));
  const lines = toRows(rows).map((row) => `  ${row}`);
  const head = `Found ${toSafeLine(resolve(file))}, which you have not used like this before. It names:`;
  return [head, "", ...(lines.length === 0 ? ["  no servers"] : lines), "", ""].join("\n");
}
