import { expect, onTestFinished, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { FakeHttp, startSse, toReply } from "../support/fake-http.ts";
import { modernScript, text } from "../support/fake-script.ts";

async function meet(answer: (name: unknown) => "json" | "sse"): Promise<Client> {
  const server = await FakeHttp.listen((request, response) => {
    const { message } = request;
    if (message?.method !== "tools/call") return toReply(request, modernScript()(message!));
    const size = Number((message.params?.["arguments"] as { message?: string } | undefined)?.message);
    const result = { jsonrpc: "2.0", id: message.id, result: { ...text("x".repeat(size)) } };
    if (answer(message.params?.["name"]) === "json") return { body: result };
    startSse(response)({ data: result });
    response.end();
    return undefined;
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const client = await connect(server.url, { eras: createEraCache(), maxResponseBytes: 100_000 });
  onTestFinished(() => client[Symbol.asyncDispose]());
  return client;
}

test.each(["json", "sse"] as const)(
  "an answer over the limit is one clear error (%s), and the next call works",
  async (form) => {
    const client = await meet(() => form);
    expect((await client.callTool("echo", { message: "90000" })).content).toHaveLength(1);
    await expect(client.callTool("echo", { message: "300000" })).rejects.toThrow(/more than 100000 bytes/);
    expect((await client.callTool("echo", { message: "10" })).content).toEqual(text("x".repeat(10)).content);
  },
);

test("a thousand calls at once share the sockets there are", async () => {
  const client = await meet(() => "json");
  const results = await Promise.all(
    Array.from({ length: 1000 }, () => client.callTool("echo", { message: "1" })),
  );
  expect(results).toHaveLength(1000);
});
