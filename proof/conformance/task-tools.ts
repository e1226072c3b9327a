import { setTimeout as sleep } from "node:timers/promises";
import { elicit, inputRequired, type Registry, RpcError, ToolError } from "junctor";

const nameForm = elicit("What is your name?", { name: { type: "string" } });
const confirmForm = elicit("Go on?", { confirm: { type: "boolean" } });

/** The tools of the scenarios for tasks. */
export function registerTaskTools(registry: Registry): void {
  const name = { type: "object", properties: { name: { type: "string" } }, required: ["name"] } as const;
  registry.register("greet", { description: "Greets at once", input: name }, (args) => {
    return `Hello, ${String((args as { readonly name: unknown }).name)}!`;
  });
  registry.register(
    "slow_compute",
    {
      description: "Takes its time",
      task: "optional",
      input: {
        type: "object",
        properties: { seconds: { type: "number", maximum: 120 }, label: { type: "string" } },
        required: ["seconds"],
      },
    },
    async (args, { signal, status }) => {
      const { seconds, label = "slow" } = args as { readonly seconds: number; readonly label?: string };
      await status("computing");
      await sleep(seconds * 1000, undefined, { signal });
      return `${label}: computed for ${seconds} s`;
    },
  );
  registry.register(
    "failing_job",
    { description: "Fails as a tool", task: "required" },
    async (_, { signal }) => {
      await sleep(1000, undefined, { signal });
      throw new ToolError("The job failed, as it always does.");
    },
  );
  registry.register("protocol_error_job", { description: "Fails as a request", task: "required" }, () => {
    throw new RpcError("rpc.internal", "The job could not be served.");
  });
  registry.register(
    "confirm_delete",
    {
      description: "Asks before it deletes",
      task: "required",
      input: { type: "object", properties: { filename: { type: "string" } }, required: ["filename"] },
    },
    async (args, { askNow }) => {
      const { filename } = args as { readonly filename: string };
      const answer = (await askNow({ confirm: confirmForm })).elicited("confirm");
      const isConfirmed = answer?.action === "accept" && answer.content["confirm"] === true;
      return isConfirmed ? `Deleted ${filename}` : `Kept ${filename}`;
    },
  );
  registry.register(
    "multi_input",
    { description: "Asks two things at once", task: "required" },
    async (_, { askNow }) => {
      const answers = await askNow({ name: nameForm, confirm: confirmForm });
      return `${answers.elicited("name")?.action ?? "none"}, ${answers.elicited("confirm")?.action ?? "none"}`;
    },
  );
  registry.register(
    "test_tool_with_task",
    {
      description: "Asks first, and then runs as a task",
      task: "required",
      askFirst: (_, { answers }) =>
        answers.elicited("user_name") === undefined ? inputRequired({ user_name: nameForm }) : undefined,
    },
    (_, { answers }) => {
      const answer = answers.elicited("user_name");
      return `Hello, ${answer?.action === "accept" ? String(answer.content["name"]) : "stranger"}!`;
    },
  );
}
