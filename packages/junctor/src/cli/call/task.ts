import type { ClientTask, TaskReport } from "@junctor/client";
import type { ToolResult } from "@junctor/core/mcp";
import { junctor } from "../../invocation/index.ts";
import {
  type Interruption,
  note,
  type ParsedOf,
  print,
  type Run,
  toSafeLine,
  toSafeText,
  UsageError,
  watchInterrupt,
  withTerminal,
} from "../terminal/index.ts";
import { type CallView, createCallView, describeResult } from "./call-view.ts";
import { createQuestions } from "./questions.ts";
import { parseDestination } from "./target.ts";
import { withClient } from "./with-client.ts";

/** `junctor task` */
export const task: Run<"task"> = async (parsed) => {
  const [ref, stray] = parsed.operands;
  if (ref === undefined || stray !== undefined)
    throw new UsageError(`task needs one ref, as ${junctor("call")} printed it: ${junctor("task")} REF`);
  if (parsed.flags.status && parsed.flags.cancel) throw new UsageError("give --status or --cancel, not both");
  await using destination = await parseDestination(parsed, { server: parsed.flags.server });
  const isJson = parsed.flags.json;
  using interruption = watchInterrupt();
  const view = createCallView(process.stdout.isTTY && !isJson);
  const handlers = createQuestions({
    isInteractive: process.stdin.isTTY && process.stderr.isTTY,
    say: view.say,
    onInterrupt: interruption.interrupt,
  });
  return withClient(destination, interruption, { handlers, tasks: true }, async (client, signal) => {
    const found = client.task(ref);
    if (parsed.flags.cancel) {
      await found.cancel();
      return 0;
    }
    if (parsed.flags.status) {
      const report = await found.get();
      const words = [report.status, ...(report.message === undefined ? [] : [toSafeLine(report.message)])];
      await print(isJson ? `${JSON.stringify(report, undefined, 2)}\n` : `${words.join(": ")}\n`);
      return 0;
    }
    const ended = await followTask(found, { parsed, interruption, view, signal, onInterrupt: "leave" });
    return typeof ended === "number" ? ended : showResult(ended, "the task", isJson, view);
  });
};

interface FollowTaskOptions {
  readonly parsed: ParsedOf<"call" | "task">;
  readonly interruption: Interruption;
  readonly view: CallView;
  readonly signal: AbortSignal;
  /** What Ctrl-C does: ask whether the task is to go on, end it, or leave it alone. */
  readonly onInterrupt: "ask" | "cancel" | "leave";
}

/** Waits for a task and shows its status. Resolves with its result, or with the exit code when the user left it. */
export async function followTask(task: ClientTask, options: FollowTaskOptions): Promise<ToolResult | number> {
  const { interruption, view, signal } = options;
  const leaving = new AbortController();
  let exitCode = 0;
  interruption.intercept = (code) => {
    interruption.intercept = undefined; // A second Ctrl-C ends everything.
    exitCode = code;
    leaving.abort();
  };
  const onStatus = ({ status, message }: TaskReport): void => {
    if (message !== undefined) view.say(`[${status}] ${toSafeLine(message)}`);
  };
  try {
    return await task.result({ signal: AbortSignal.any([signal, leaving.signal]), onStatus });
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
    await leave(task, options);
    return exitCode;
  } finally {
    interruption.intercept = undefined;
  }
}

async function leave(
  task: ClientTask,
  { parsed, interruption, signal, onInterrupt }: FollowTaskOptions,
): Promise<void> {
  const isKept =
    onInterrupt === "leave" ||
    (onInterrupt === "ask" &&
      (await withTerminal(interruption.interrupt, signal, async (ask) =>
        /^y(es)?$/i.test((await ask("\nLeave the task running? (yes|no): "))?.trim() ?? ""),
      )));
  if (!isKept) await task.cancel();
  const back = toTaskCommand(task.ref, parsed);
  await note(isKept ? `The task goes on. Come back to it with:\n  ${back}\n` : "The task was cancelled.\n");
}

/** The command line that finds a task again. Headers may hold a key, so they are not repeated. */
export function toTaskCommand(ref: string, parsed: ParsedOf<"call" | "task">): string {
  const flags = (["server", "config"] as const).flatMap((flag) => {
    const value = parsed.flags[flag];
    return value === undefined ? [] : [`--${flag}`, toShellWord(value)];
  });
  const headers = parsed.flags.header.length > 0 ? ["--header …"] : [];
  return [junctor("task"), toShellWord(ref), ...flags, ...headers].join(" ");
}

function toShellWord(word: string): string {
  const safe = toSafeLine(word);
  return /^[\w@%+=:,./-]+$/.test(safe) ? safe : `'${safe.replaceAll("'", `'\\''`)}'`;
}

/** Shows the result of a call and resolves with the exit code. */
export async function showResult(
  result: ToolResult,
  name: string,
  isJson: boolean,
  view: CallView,
): Promise<number> {
  const isFailed = result.isError === true;
  if (isJson) await print(`${JSON.stringify(result, undefined, 2)}\n`);
  else if (isFailed) await note(`junctor: ${name} failed: ${toSafeText(describeResult(result))}\n`);
  else await view.result(result);
  return isFailed ? 1 : 0;
}
