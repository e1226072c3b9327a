import { expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createDeferred } from "../../packages/core/src/async/queue.ts";
import { FakeHttp, startSse, toReply } from "../support/fake-http.ts";
import { legacyScript, text } from "../support/fake-script.ts";
import type { Message } from "../support/raw-http.ts";

const question = {
  jsonrpc: "2.0",
  id: "q1",
  method: "elicitation/create",
  params: { message: "Name?", requestedSchema: { type: "object", properties: {} } },
};

const accepted = { action: "accept", content: { name: "Ada" } } as const;

test("a legacy server that asks on its stream of announcements, as the official SDK does, is answered", async () => {
  const stream = createDeferred<ReturnType<typeof startSse>>();
  const answered = createDeferred<Message>();
  const script = legacyScript({});
  await using server = await FakeHttp.listen(async (heard, response) => {
    const { verb, message } = heard;
    if (verb === "GET") {
      stream.resolve(startSse(response));
      return undefined;
    }
    if (message?.id === "q1") {
      answered.resolve(message);
      return { status: 202 };
    }
    if (message?.method !== "tools/call") return toReply(heard, message && script(message));
    (await stream.promise)({ data: question });
    const { result } = await answered.promise;
    return toReply(heard, { result: text(JSON.stringify(result)) });
  });
  await using client = await connect(server.url, {
    revision: "2025-11-25",
    handlers: { elicit: () => accepted },
  });
  expect(await client.callTool("echo", { message: "" })).toEqual(text(JSON.stringify(accepted)));
});

test("a client that cannot be asked leaves that stream alone", async () => {
  const script = legacyScript({});
  await using server = await FakeHttp.listen((heard) =>
    toReply(heard, heard.message && script(heard.message)),
  );
  {
    await using client = await connect(server.url, { revision: "2025-11-25" });
    await client.callTool("echo", { message: "" });
  }
  expect(server.heard.map(({ verb }) => verb)).not.toContain("GET");
});
