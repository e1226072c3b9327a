import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import type { QuestionHandlers } from "../../packages/client/src/client/handlers.ts";
import { RpcError } from "../../packages/core/src/errors/index.ts";
import type { ToolResult } from "../../packages/core/src/mcp/types.ts";
import { type Front, startFront } from "./support/front.ts";
import { type AskingUpstream, type EraName, startUpstream, type Way } from "./support/upstream.ts";

const ways: readonly Way[] = ["http", "stdio"];
const eras: readonly EraName[] = ["legacy", "modern"];
const pairs = ways.flatMap((front) =>
  ways.flatMap((back) =>
    eras.flatMap((upstreamEra) => eras.map((clientEra) => ({ front, back, upstreamEra, clientEra }))),
  ),
);

type User = { -readonly [Kind in keyof QuestionHandlers]-?: NonNullable<QuestionHandlers[Kind]> };

const accept = (params: {
  readonly [key: string]: unknown;
}): { action: "accept"; content: { nonce: string } } => ({
  action: "accept",
  content: { nonce: String(params["message"]) },
});
const textOf = ({ content }: ToolResult): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");
const answersOf = (result: ToolResult): unknown => JSON.parse(textOf(result));

// A gateway for each pair; its tests share it, and each leaves it usable.
describe.each(pairs)("a $clientEra client over $front and a $upstreamEra server over $back", (pair) => {
  const { front: frontWay, back, upstreamEra, clientEra } = pair;
  let upstream: AskingUpstream;
  let front: Front;
  let client: Client;
  /** Who answers; a test may replace any of them. */
  let user: User;
  let nonce = "";
  let tests = 0;

  beforeAll(async () => {
    upstream = await startUpstream(upstreamEra, back);
    front = await startFront(frontWay, {
      mcpServers: { up: upstream.entry },
      // A caller that never answers must not hold up the tests that come after it.
      junctor: { servers: { up: { answerWithinMs: 100 } } },
    });
    const handlers: QuestionHandlers = {
      elicit: (params, signal) => user.elicit(params, signal),
      elicitUrl: (params, signal) => user.elicitUrl(params, signal),
      sample: (params, signal) => user.sample(params, signal),
      roots: () => user.roots(),
    };
    reset();
    client = await front.connect(clientEra, { handlers });
  });
  afterAll(async () => {
    await client?.close();
    await front?.[Symbol.asyncDispose]();
    await upstream?.[Symbol.asyncDispose]();
  });

  function reset(): void {
    nonce = `n${++tests}`;
    user = {
      elicit: accept,
      elicitUrl: () => ({ action: "accept", content: {} }),
      sample: (params) => ({
        role: "assistant",
        model: "m",
        content: { type: "text", text: JSON.stringify(params["messages"]) },
      }),
      roots: () => [{ uri: "file:///home" }],
    };
  }
  const ask = (rounds: readonly (readonly string[])[], signal?: AbortSignal): Promise<ToolResult> =>
    client.callTool("up__ask", { nonce, rounds }, signal === undefined ? {} : { signal });

  test("fills in a form", async () => {
    reset();
    expect(answersOf(await ask([["form"]]))).toEqual([
      [{ action: "accept", content: { nonce: `form 0 ${nonce}` } }],
    ]);
    expect(upstream.count("run", nonce)).toBe(1);
  });

  test("visits a page", async () => {
    reset();
    let url: unknown;
    user.elicitUrl = (params) => {
      url = params["url"];
      return { action: "accept", content: {} };
    };
    expect(answersOf(await ask([["url"]]))).toMatchObject([[{ action: "accept" }]]);
    expect(url).toBe(`https://example.com/${nonce}`);
  });

  test("has its model write", async () => {
    reset();
    const answers = answersOf(await ask([["sample"]]));
    expect(answers).toMatchObject([[{ model: "m", role: "assistant" }]]);
    expect(JSON.stringify(answers)).toContain(`sample 0 ${nonce}`);
  });

  test("tells its roots", async () => {
    reset();
    expect(answersOf(await ask([["roots"]]))).toEqual([[{ roots: [{ uri: "file:///home" }] }]]);
  });

  test("answers several rounds of several questions, and the tool runs once", async () => {
    reset();
    const answers = answersOf(await ask([["form", "roots"], ["sample"], ["form", "url", "form"]]));
    expect(answers).toMatchObject([
      [{ content: { nonce: `form 0 ${nonce}` } }, { roots: [{}] }],
      [{ model: "m" }],
      [
        { content: { nonce: `form 2 ${nonce}` } },
        { action: "accept" },
        { content: { nonce: `form 2 ${nonce}` } },
      ],
    ]);
    expect(upstream.count("run", nonce)).toBe(1);
    expect(upstream.count("done", nonce)).toBe(1);
  });

  test.each(["decline", "cancel"] as const)("says %s", async (action) => {
    reset();
    user.elicit = () => ({ action });
    expect(answersOf(await ask([["form"]]))).toEqual([[{ action }]]);
  });

  test("refuses to write, and the call ends", async () => {
    reset();
    user.sample = () => {
      throw new RpcError("rpc.other", "The user said no", { rpcCode: -1 });
    };
    const called = ask([["sample"]]);
    // A modern client has no way to say so: it does not come back. A modern server has no way to hear it.
    if (clientEra === "modern") await expect(called).rejects.toThrow("The user said no");
    else if (upstreamEra === "modern") expect(await called).toMatchObject({ isError: true });
    else expect(answersOf(await called)).toEqual([[{ refused: -1 }]]);
  });

  test("cannot show the form, and the call ends", async () => {
    reset();
    user.elicit = () => {
      throw new RpcError("rpc.internal", "No screen");
    };
    const called = ask([["form"]]);
    if (clientEra === "modern") await expect(called).rejects.toThrow("No screen");
    else if (upstreamEra === "modern") expect(answersOf(await called)).toEqual([[{ action: "cancel" }]]);
    else expect(answersOf(await called)).toEqual([[{ refused: -32603 }]]);
  });

  /** Begins a call whose user never answers, gives it up when the user was asked, and tells of the question. */
  const giveUp = async (): Promise<{ readonly asked: AbortSignal | undefined; readonly error: unknown }> => {
    const controller = new AbortController();
    let asked: AbortSignal | undefined;
    user.elicit = (_, signal) => {
      asked = signal;
      return new Promise(() => {});
    };
    const called = ask([["form"]], controller.signal).catch((error: unknown) => error);
    await expect.poll(() => asked).toBeDefined();
    controller.abort();
    return { asked, error: await called };
  };

  test("gives up a call that waits for its user, and can go on", async () => {
    reset();
    expect((await giveUp()).error).toMatchObject({ name: "AbortedError" });
    // A modern caller is not there while it thinks: its call is given up when the time is over.
    if (clientEra === "legacy" && upstreamEra === "legacy")
      await expect.poll(() => upstream.count("cancelled", nonce)).toBe(1);
    reset();
    expect(answersOf(await ask([["roots"]]))).toHaveLength(1);
  });

  test("spares its user the question of a call that was given up", async () => {
    reset();
    const { asked } = await giveUp();
    await expect.poll(() => asked?.aborted).toBe(true);
  });

  test.runIf(upstreamEra === "legacy")("is sent to a page before the server does anything", async () => {
    reset();
    const called = client.callTool("up__visit", { nonce });
    if (clientEra === "legacy") return expect(called).rejects.toMatchObject({ rpcCode: -32042 });
    expect(textOf(await called)).toBe("welcome");
    expect(upstream.count("run", nonce)).toBe(2);
  });

  test.runIf(upstreamEra === "legacy" && clientEra === "modern")(
    "does not want to be sent to a page",
    async () => {
      reset();
      user.elicitUrl = () => ({ action: "decline" });
      expect(await client.callTool("up__visit", { nonce })).toMatchObject({ isError: true });
      expect(upstream.count("run", nonce)).toBe(1);
    },
  );
});
