import { junctor } from "../../invocation/index.ts";
import { print, type Run, toSafeLine, UsageError, watchInterrupt } from "../terminal/index.ts";
import { createCallView } from "./call-view.ts";
import { followTask, showResult } from "./follow-task.ts";
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
