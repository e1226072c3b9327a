import { describe, expect, test } from "vitest";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import type { Server } from "../../packages/core/src/mcp/server.ts";
import type { Outcome, Provider, Round } from "../../packages/core/src/provider/provider.ts";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { envelope, talkLegacy, talkModern } from "../support/conversation.ts";
import { toLists } from "../support/use-provider.ts";
import type { Frame } from "../support/wire-schema.ts";

// Invariant 2 holds for the answer to a question as for arguments: it reaches the server as the bytes that came.

const requestedSchema = { type: "object", properties: { amount: { type: "number" } }, required: ["amount"] };
const answer = '{ "action":"accept","content":{"amount":12345678901234567890}, "x":[1.0,-0] }';

const requests = [
  ["tools/call", { name: "pay", arguments: {} }],
  ["prompts/get", { name: "pay", arguments: { to: "a" } }],
  ["resources/read", { uri: "pay:1" }],
] as const;

/** A provider that asks before it does anything, and what it was answered. */
function createAsker(): { readonly provider: Provider; readonly answers: string[] } {
  const answers: string[] = [];
  const serve = (round: Round | undefined, result: object): Outcome => {
    const given = (round?.latest ?? round?.answers)?.["amount"];
    if (given === undefined) {
      const params = { message: "How much?", requestedSchema };
      return {
        kind: "input_required",
        asks: { amount: { method: "elicitation/create", params } },
        state: "s",
      };
    }
    answers.push(given.text);
    return { kind: "complete", result: RawJson.fromValue(result) };
  };
  const provider: Provider = {
    list: toLists({
      tools: [{ name: "pay", inputSchema: { type: "object" } }],
      prompts: [{ name: "pay" }],
      resources: [{ name: "pay", uri: "pay:1" }],
    }),
    call: ({ part, round }) =>
      serve(
        round,
        part === "tools" ? { content: [] } : part === "prompts" ? { messages: [] } : { contents: [] },
      ),
    offers: () => ({ serves: () => true }),
  };
  return { provider, answers };
}

async function start(): Promise<AsyncDisposable & { readonly server: Server; readonly answers: string[] }> {
  const { provider, answers } = createAsker();
  const gateway = await createGateway({ mcpServers: {} }, { local: { bank: provider } });
  await gateway.ready;
  return { server: gateway.server, answers, [Symbol.asyncDispose]: () => gateway.close() };
}

describe("an answer reaches a server behind the gateway as the bytes that came", () => {
  test.each(requests)("in %s of a modern caller", async (method, params) => {
    await using gateway = await start();
    const capabilities = { elicitation: { form: {} } };
    const caller = talkModern(gateway.server, { capabilities });
    const { requestState } = await caller.result<{ requestState: string }>(method, params);
    const members = JSON.stringify({ ...params, requestState, _meta: envelope(capabilities) }).slice(0, -1);
    caller.wire.send(
      `{"jsonrpc":"2.0","id":"again","method":"${method}","params":${members},"inputResponses":{"amount":${answer}}}}`,
    );
    const { error } = await caller.wire.take(({ id }) => id === "again");
    expect(error).toBeUndefined();
    expect(gateway.answers).toEqual([answer]);
    caller.wire.end();
  });

  test.each(requests)("in %s of a legacy caller", async (method, params) => {
    await using gateway = await start();
    const caller = await talkLegacy(gateway.server, "2025-11-25", { capabilities: { elicitation: {} } });
    const answered = caller.request(method, params);
    const question: Frame = await caller.wire.take((frame) => frame.method === "elicitation/create");
    caller.wire.send(`{"jsonrpc":"2.0","id":${JSON.stringify(question.id)},"result":${answer}}`);
    expect((await answered).error).toBeUndefined();
    expect(gateway.answers).toEqual([answer]);
    await caller[Symbol.asyncDispose]();
  });
});
