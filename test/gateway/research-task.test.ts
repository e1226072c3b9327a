// The official server-everything runs its research as a task of 2025-11-25 that asks: clients of every kind get its report.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import type { Revision } from "../../packages/core/src/mcp/revision.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";
import { createTaskCaller } from "./support/task-caller.ts";

const server = new URL(
  "../../node_modules/@modelcontextprotocol/server-everything/dist/index.js",
  import.meta.url,
).pathname;
const args = { topic: "python", ambiguous: true };
/** 2025-06-18 knows choices by `enum` only. */
interface Choice {
  readonly oneOf?: readonly { readonly const: string }[];
  readonly enum?: readonly string[];
}
interface Form {
  readonly properties: { readonly interpretation: Choice };
}
const tool = "all__simulate-research-query";

describe("a task of 2025-11-25 behind a gateway", () => {
  let at: TestGateway;
  beforeAll(async () => {
    at = await startTestGateway({
      mcpServers: { all: { command: process.execPath, args: [server, "stdio"] } },
    });
  });
  afterAll(() => at?.[Symbol.asyncDispose]());

  const textOf = (result: { readonly content?: unknown }): string => JSON.stringify(result.content);

  test.concurrent.each<[Revision, boolean, string]>([
    ["2025-06-18", false, "snakes"],
    ["2025-11-25", false, "python"],
    ["2026-07-28", false, "rust"],
    ["2026-07-28", true, "java"],
  ])("a client of %s (that declares tasks: %s) is asked about %s, and gets the report", async (...given) => {
    const [revision, tasks, topic] = given;
    const asked: string[] = [];
    await using client = await connect(at.url, {
      revision,
      tasks,
      eras: createEraCache(),
      handlers: {
        elicit: ({ message, requestedSchema }) => {
          asked.push(String(message));
          const { interpretation: choice } = (requestedSchema as Form).properties;
          const last = choice.oneOf?.at(-1)?.const ?? choice.enum?.at(-1);
          return { action: "accept", content: { interpretation: last } };
        },
      },
    });
    const result = await client.callTool(tool, { topic, ambiguous: true });
    expect(result.isError).not.toBe(true);
    expect(textOf(result)).toContain(`Research Report: ${topic} (`);
    expect(textOf(result)).toContain("After receiving clarification");
    // Four tasks run side by side on one process, and each question reaches its own caller.
    expect(asked).toEqual([expect.stringContaining(`"${topic}"`)]);
  });

  test.concurrent("a client that can be asked nothing gets a report too", async () => {
    const caller = createTaskCaller(at.url, { capabilities: {} });
    const { result } = await caller("tools/call", { name: tool, arguments: { topic: "python" } });
    expect(textOf(result)).toContain("python");
  });

  test.concurrent("a caller that declares tasks gets an id at once, the stages as messages, and can cancel it", async () => {
    const caller = createTaskCaller(at.url);
    const taskId = await caller.begin(tool, args);
    const asked = await caller.until(taskId, "input_required");
    expect(Object.values(asked["inputRequests"] as object)).toMatchObject([{ method: "elicitation/create" }]);
    await caller("tasks/cancel", { taskId });
    await caller.until(taskId, "cancelled");
  });

  test.concurrent("the list says nothing of tasks that callers would have to know", async () => {
    await using client = await connect(at.url, { revision: "2025-11-25", eras: createEraCache() });
    const tools = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain(tool);
    expect(tools.filter((each) => "execution" in each)).toEqual([]);
  });
});
