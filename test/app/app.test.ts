import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { connect } from "../../packages/client/src/client/connect.ts";
import { accepted, declined } from "../../packages/junctor/src/testing/answers.ts";
import { connectForTest } from "../../packages/junctor/src/testing/connect-for-test.ts";
import { bearer, createApp } from "../../packages/server/src/app/index.ts";

const secret = "a secret of at least thirty-two characters";
const users = new Map([["t0ken", { name: "ada", issues: ["7"] }]]);

function createIssues() {
  const charged: string[] = [];
  const app = createApp({
    name: "issues",
    version: "1.0.0",
    secret,
    user: bearer((token) => users.get(token)),
  })
    .tool("close_issue", { input: z.object({ id: z.string() }) }, async ({ id }, { user, ask, once }) => {
      await once("charge", () => void charged.push(id));
      const { confirm } = await ask(`Close ${id}?`, z.object({ confirm: z.boolean() }));
      return `${user.name} closed ${id}: ${confirm}`;
    })
    .tool(
      "add",
      {
        input: {
          type: "object",
          properties: { a: { type: "number" }, b: { type: "number" } },
          required: ["a", "b"],
        },
      },
      ({ a, b }) => a + b,
    )
    .resource(
      "issue://{id}",
      {
        list: ({ user }) => user.issues.map((id) => `issue://${id}`),
        complete: { id: (typed) => [`${typed}7`] },
      },
      ({ id }, { user }) => ({ id, owner: user.name }),
    )
    .prompt(
      "triage",
      {
        args: z.object({ id: z.string(), urgent: z.coerce.boolean().optional() }),
        complete: { id: () => ["7"] },
      },
      ({ id, urgent }) => `Triage ${id}${urgent === true ? " now" : ""}`,
    );
  return { app, charged };
}

describe.each(["2026-07-28", "2025-11-25", "2025-06-18"] as const)("in %s", (revision) => {
  test("a handler asks in the middle, and what must happen once does", async () => {
    const { app, charged } = createIssues();
    await using client = await connectForTest(app, {
      revision,
      caller: "ada",
      answers: { elicit: accepted({ confirm: true }) },
    });
    const { content } = await client.callTool("close_issue", { id: "4" });
    expect(content).toEqual([{ type: "text", text: "ada closed 4: true" }]);
    expect(charged).toEqual(["4"]);
  });

  test("a user who declines ends the handler with an error that the model reads", async () => {
    const { app } = createIssues();
    await using client = await connectForTest(app, {
      revision,
      caller: "ada",
      answers: { elicit: declined() },
    });
    expect(await client.callTool("close_issue", { id: "4" })).toMatchObject({
      isError: true,
      content: [{ text: "The user declined: Close 4?" }],
    });
  });
});

test("a web request is answered for its user", async () => {
  const { app } = createIssues();
  const http = createHttpServer((incoming, response) => void app.node(incoming, response)).listen(
    0,
    "127.0.0.1",
  );
  await new Promise((resolve) => http.once("listening", resolve));
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/anything`;
  await expect(connect(url).then((client) => client.listTools())).rejects.toThrow("401");
  await using client = await connect(url, { headers: { authorization: "Bearer t0ken" } });
  expect((await client.listResources()).map(({ uri }) => uri)).toEqual(["issue://7"]);
  expect(await client.readResource("issue://7")).toMatchObject({
    contents: [{ mimeType: "application/json", text: '{"id":"7","owner":"ada"}' }],
  });
  expect(await client.getPrompt("triage", { id: "7", urgent: "yes" })).toMatchObject({
    messages: [{ content: { text: "Triage 7 now" } }],
  });
  expect((await client.callTool("add", { a: 1, b: 2 })).structuredContent).toBe(3);
  http.close();
});
