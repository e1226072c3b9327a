import { text as readText } from "node:stream/consumers";
import type { Client } from "@junctor/client";
import type { Tool } from "@junctor/core/mcp";
import { defined, suggest } from "@junctor/core/options";
import { junctor } from "../../invocation/index.ts";
import {
  note,
  type ParsedOf,
  print,
  type Run,
  ServerTrouble,
  toSafeLine,
  UsageError,
  watchInterrupt,
} from "../terminal/index.ts";
import { createCallView } from "./call-view.ts";
import { createQuestions } from "./questions.ts";
import { parseDestination } from "./target.ts";
import { followTask, showResult, toTaskCommand } from "./task.ts";
import { describeTool, parseArgumentsJson, parseAssignments } from "./tool-arguments.ts";
import { withClient } from "./with-client.ts";

/** `junctor call` */
export const call: Run<"call"> = async (parsed) => {
  const [name, ...words] = parsed.operands;
  if (name === undefined)
    throw new UsageError(
      `call needs the name of a tool: ${junctor("call")} TOOL [KEY=VALUE…]; ${junctor("tools")} lists them`,
    );
  assertSensible(name, words, parsed);
  await using destination = await parseDestination(parsed, {
    server: parsed.flags.server,
    tool: name,
  });
  const json = await readJson(parsed.flags.args);
  const isJson = parsed.flags.json;
  using interruption = watchInterrupt();
  const view = createCallView(process.stdout.isTTY && !isJson);
  const isInteractive = process.stdin.isTTY && process.stderr.isTTY && parsed.flags.args !== "-";
  const handlers = createQuestions({
    isInteractive,
    say: view.say,
    onInterrupt: interruption.interrupt,
  });
  const warn = (text: string): void => view.say(`junctor: ${toSafeLine(text)}`);
  const options = { handlers, onLog: view.event, onWarning: warn, tasks: true };
  return await withClient(destination, interruption, options, async (client, signal) => {
    const tool = await findTool(client, name);
    const args = json === undefined ? parseAssignments(words, tool) : parseArgumentsJson(json, tool);
    const started = await client.startTool(name, args, {
      signal,
      onEvent: view.event,
      logLevel: "info",
      ...defined({ idempotencyKey: parsed.flags.key }),
    });
    if (started.kind === "complete") return showResult(started.result, name, isJson, view);
    if (parsed.flags.detach) {
      await print(`${toTaskCommand(started.task.ref, parsed)}\n`);
      return 0;
    }
    // A server that is started here ends with this command, and its tasks with it.
    const canLeave = isInteractive && parsed.command === undefined;
    const onInterrupt = canLeave ? "ask" : "cancel";
    const ended = await followTask(started.task, { parsed, interruption, view, signal, onInterrupt });
    return typeof ended === "number" ? ended : showResult(ended, name, isJson, view);
  });
};

function assertSensible(name: string, words: readonly string[], parsed: ParsedOf<"call">): void {
  if (name.includes("://") || name.includes("="))
    throw new UsageError(
      `the name of a tool comes first, but got ${JSON.stringify(name)}; write ${junctor("call")} TOOL [KEY=VALUE…] --server URL`,
    );
  const [first] = words;
  if (parsed.flags.args !== undefined && first !== undefined)
    throw new UsageError(`give the arguments as --args or as KEY=VALUE, not both: ${JSON.stringify(first)}`);
  const url = words.find((word) => /^(https?|tcp):\/\//.test(word));
  if (url !== undefined) throw new UsageError(`the server is named by a flag: --server ${url}`);
}

async function readJson(given: string | undefined): Promise<string | undefined> {
  if (given !== "-") return given;
  if (process.stdin.isTTY) await note("Type the arguments as JSON, then Ctrl-D:\n");
  return readText(process.stdin);
}

/** A gateway does not list the tools of a server that it could not start, and says so beside the list. */
async function assertServerUp(client: Client, tool: string): Promise<void> {
  const { _meta: meta } = (await client.request("tools/list")) as {
    readonly _meta?: {
      readonly "junctor/servers"?: {
        readonly [server: string]: { readonly status?: string; readonly reason?: string };
      };
    };
  };
  for (const [name, { status, reason }] of Object.entries(meta?.["junctor/servers"] ?? {}))
    if (tool.startsWith(name) && status !== "up")
      throw new ServerTrouble(
        `the tool ${JSON.stringify(tool)} is not listed, because ${name} is ${status}: ${reason ?? "try again in a moment"}`,
      );
}

async function findTool(client: Client, name: string): Promise<Tool> {
  const listed = await client.listTools();
  const tool = listed.find((candidate) => candidate.name === name);
  if (tool !== undefined) return tool;
  await assertServerUp(client, name);
  const names = listed.map((candidate) => toSafeLine(candidate.name));
  const more = names.length > 8 ? ` and ${names.length - 8} more` : "";
  const list =
    names.length === 0 ? "the server has none" : `there are ${names.slice(0, 8).join(", ")}${more}`;
  throw new UsageError(`there is no tool ${JSON.stringify(name)}; ${suggest(name, names, list)}`);
}

/** The help of the tool that a command line names; undefined where it names none. */
export const describeCall: (parsed: ParsedOf<"call">) => Promise<string | undefined> = async (parsed) => {
  const [name] = parsed.operands;
  if (name === undefined) return undefined;
  await using destination = await parseDestination(parsed, {
    server: parsed.flags.server,
    tool: name,
  });
  using interruption = watchInterrupt();
  return await withClient(destination, interruption, {}, async (client) =>
    describeTool(await findTool(client, name)),
  );
};
