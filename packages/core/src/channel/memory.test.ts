import { expect, test } from "vitest";
import { RawJson } from "../json/raw.ts";
import type { Incoming } from "../rpc/channel.ts";
import { createMemoryPair } from "./memory.ts";

async function take(channel: AsyncIterable<readonly Incoming[]>): Promise<Incoming | undefined> {
  const step = await channel[Symbol.asyncIterator]().next();
  return step.done === true ? undefined : step.value[0];
}

test("a message in memory has the limit of a line", async () => {
  const [left, right] = createMemoryPair();
  const params = RawJson.fromText(`{"x":"${"x".repeat(16 * 1024 * 1024)}"}`);
  await left.send({ kind: "notification", method: "a", params });
  await expect(take(right)).resolves.toMatchObject({ kind: "invalid", error: { rpcCode: -32600 } });
});

test("a message in memory is checked like untrusted input", async () => {
  const [left, right] = createMemoryPair();
  const params = RawJson.fromText('{"name":"a","Name":"b"}');
  await left.send({ kind: "notification", method: "a", params });
  await expect(take(right)).resolves.toMatchObject({ kind: "invalid", error: { rpcCode: -32600 } });
});
