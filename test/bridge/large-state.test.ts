// Servers whose state is large. The upstream seals its own, and ours goes around that.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RpcError } from "../../packages/core/src/errors/index.ts";
import { type HttpFront, startHttpFront } from "./support/front.ts";
import { type AskingUpstream, startUpstream } from "./support/upstream.ts";

const kib = 1024;

describe("a modern server whose state has", () => {
  let upstream: AskingUpstream;
  let front: HttpFront;

  beforeAll(async () => {
    upstream = await startUpstream("modern", "http");
    front = await startHttpFront({ mcpServers: { up: upstream.entry } });
  });
  afterAll(async () => {
    await front?.[Symbol.asyncDispose]();
    await upstream?.[Symbol.asyncDispose]();
  });

  const elicit = (): object => ({ action: "accept", content: { nonce: "n" } });
  const call = async (era: "legacy" | "modern", bulk: number): Promise<unknown> => {
    await using client = await front.connect(era, { handlers: { elicit: elicit as never } });
    return await client.callTool("up__ask", { nonce: `n${bulk}`, rounds: [["form"], ["form"]], bulk });
  };

  test.each([40, 64, 500])("%i KiB works for a modern client", async (size) => {
    expect(await call("modern", size * kib)).not.toHaveProperty("isError");
  });

  test("700 KiB is too large for a modern client to carry, and the error says what to do", async () => {
    const error = await call("modern", 700 * kib).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RpcError);
    expect(error).toMatchObject({
      rpcCode: -32603,
      message: expect.stringMatching(/state .* limit is 1048576.* Keep the data on the server/s) as string,
      data: { code: "seal.too_large" },
    });
  });

  test("700 KiB works for a legacy client, which does not carry it", async () => {
    expect(await call("legacy", 700 * kib)).not.toHaveProperty("isError");
  });
});
