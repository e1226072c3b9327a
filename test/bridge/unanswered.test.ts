// Callers of one stdio process that do not answer its questions, and others that wait for them. How long they wait is in
// packages/client/src/client/question-router.test.ts, under a virtual clock.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import type { ToolResult } from "../../packages/core/src/mcp/types.ts";
import { HttpWire, modernCall, modernMeta } from "../support/http-wire.ts";
import { until } from "../support/until.ts";
import { type HttpFront, startHttpFront } from "./support/front.ts";
import { type AskingUpstream, type EraName, startUpstream } from "./support/upstream.ts";

const keys = { ada: "the-long-key-of-ada", bob: "the-long-key-of-bob" };
const accepted = (nonce: string): string =>
  JSON.stringify([[{ action: "accept", content: { nonce: `form 0 ${nonce}` } }]]);
const closed = JSON.stringify([[{ action: "cancel" }]]);
const textOf = ({ content }: Pick<ToolResult, "content">): unknown =>
  content[0] && "text" in content[0] && content[0].text;

describe("a caller that leaves questions of a shared process unanswered", () => {
  let upstream: AskingUpstream;
  let front: HttpFront;
  let calls = 0;

  beforeAll(async () => {
    upstream = await startUpstream("legacy", "stdio");
    front = await startHttpFront(
      {
        mcpServers: { up: upstream.entry },
        junctor: {
          keys: { ada: { env: "ADA" }, bob: { env: "BOB" } },
          servers: { up: { answerWithinMs: 500 } },
        },
      },
      { env: { ...process.env, ADA: keys.ada, BOB: keys.bob } },
    );
  });
  afterAll(async () => {
    await front?.[Symbol.asyncDispose]();
    await upstream?.[Symbol.asyncDispose]();
  });

  const connectBob = (era: EraName): Promise<Client> =>
    front.connect(era, {
      key: keys.bob,
      handlers: { elicit: ({ message }) => ({ action: "accept", content: { nonce: String(message) } }) },
    });
  /** The next call of a caller that answers. */
  const ask = async (client: Client): Promise<{ readonly nonce: string; readonly text: unknown }> => {
    const nonce = `b${++calls}`;
    return { nonce, text: textOf(await client.callTool("up__ask", { nonce, rounds: [["form"]] })) };
  };

  test("and comes back late, in the modern era, gets the result of a call whose form was closed", async () => {
    using wire = new HttpWire(front.listener.port, "2026-07-28");
    Object.assign(wire.headers, { authorization: `Bearer ${keys.ada}` });
    const _meta = modernMeta({ elicitation: { form: {} } });
    const args = { nonce: `a${++calls}`, rounds: [["form"]] };
    const { result } = await wire.ask(modernCall("up__ask", args, { _meta }));
    const requestState = result?.["requestState"];
    const bob = await connectBob("modern");
    const { nonce, text } = await ask(bob);
    expect(text).toBe(accepted(nonce));
    const inputResponses = { "ask-1": { action: "accept", content: { nonce: "too late" } } };
    const late = await wire.ask(modernCall("up__ask", args, { _meta, requestState, inputResponses }));
    expect(late).toMatchObject({ result: { content: [{ text: closed }] } });
    expect(upstream.count("run", args.nonce)).toBe(1);
    await bob.close();
  });

  test.each(["legacy", "modern"] as const)("lets a %s caller through, again and again", async (era) => {
    const ada = await front.connect("legacy", {
      key: keys.ada,
      handlers: { elicit: () => new Promise<never>(() => {}) },
    });
    const bob = await connectBob(era);
    const abandoned: Promise<ToolResult>[] = [];
    for (let round = 0; round < 5; round++) {
      const nonce = `a${++calls}`;
      abandoned.push(ada.callTool("up__ask", { nonce, rounds: [["form"]] }));
      await until(() => upstream.count("asked", nonce) === 1);
      const asked = await ask(bob);
      expect(asked.text).toBe(accepted(asked.nonce));
    }
    expect((await Promise.all(abandoned)).map(textOf)).toEqual(abandoned.map(() => closed));
    await bob.close();
    await ada.close();
  });
});
