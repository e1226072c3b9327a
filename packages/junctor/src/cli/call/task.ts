import { type Command, UsageError, watchInterrupt, print, toSafeLine } from "../terminal/index.ts";
import { createCallView } from "./call-view.ts";
import { followTask, showResult } from "./follow-task.ts";
import { createQuestions } from "./questions.ts";
import { parseDestination, targetFlags } from "./target.ts";
import { withClient } from "./with-client.ts";

/** `junctor task` */
export const task: Command = {
  name: "task",
  summary:
    "Come back to a task that `junctor call` left running: wait for its result, look at it or cancel it.",
  operands: "REF",
  takesCommand: true,
  flags: {
    status: { help: "say where the task is, and do not wait" },
    cancel: { help: "cancel the task" },
    json: { help: "the whole result or status, as JSON" },
    server: { value: "URL|NAME", help: "the server (default http://127.0.0.1:7780/mcp), or one of --config" },
    ...targetFlags,
  },
  examples: [
    "junctor task REF                                      wait for the result; Ctrl-C leaves the task running",
    "junctor task REF --status --server http://127.0.0.1:8080/mcp",
    "junctor task REF --cancel",
  ],
  run: async (parsed) => {
    const [ref, stray] = parsed.operands;
    if (ref === undefined || stray !== undefined)
      throw new UsageError("task needs one ref, as junctor call printed it: junctor task REF");
    if (parsed.has("status") && parsed.has("cancel"))
      throw new UsageError("give --status or --cancel, not both");
    await using destination = await parseDestination(parsed, { server: parsed.valueOf("server") });
    const isJson = parsed.has("json");
    using interruption = watchInterrupt();
    const view = createCallView(process.stdout.isTTY && !isJson);
    const handlers = createQuestions({
      isInteractive: process.stdin.isTTY && process.stderr.isTTY,
      say: view.say,
      onInterrupt: interruption.interrupt,
    });
    return withClient(destination, interruption, { handlers, tasks: true }, async (client, signal) => {
      const found = client.task(ref);
      if (parsed.has("cancel")) {
        await found.cancel();
        return 0;
      }
      if (parsed.has("status")) {
        const report = await found.get();
        const words = [report.status, ...(report.message === undefined ? [] : [toSafeLine(report.message)])];
        await print(isJson ? `${JSON.stringify(report, undefined, 2)}\n` : `${words.join(": ")}\n`);
        return 0;
      }
      const ended = await followTask(found, { parsed, interruption, view, signal, onInterrupt: "leave" });
      return typeof ended === "number" ? ended : showResult(ended, "the task", isJson, view);
    });
  },
};
