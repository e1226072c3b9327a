import { describe, expect, test } from "vitest";
import { RawJson } from "../../../core/src/json/raw.ts";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import type { Conversation } from "./conversation.ts";
import { createLists, type Lists } from "./lists.ts";

/** The lists of a server with `count` tools. */
function listsOf(count: number, maxTools = 100_000, maxBytes = 64 * 1024 * 1024): Lists {
  const inputSchema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
  const tools = Array.from({ length: count }, (_, index) => ({ name: `tool${index}`, inputSchema }));
  const page = RawJson.fromText(JSON.stringify({ tools }));
  const agreement = { mode: { kind: "legacy" }, capabilities: { tools: {} } };
  const conversation = { agreement, isHearing: true } as unknown as Conversation;
  return createLists(
    () => Promise.resolve(conversation),
    () => Promise.resolve(page),
    {
      clock: createVirtualClock(),
      maxTtlMs: 1000,
      maxPages: 10,
      maxItems: 100_000,
      maxTools,
      groupedIn: async () => [],
      maxBytes,
      isHttp: false,
      onListFault: () => {},
    },
  );
}

describe("a list", () => {
  test("of many tools is read in slices, and others have their turns in between", async () => {
    let turns = 0;
    let isListing = true;
    const count = (): void => {
      turns++;
      if (isListing) setImmediate(count);
    };
    setImmediate(count);
    expect((await listsOf(5000).tools.get()).items).toHaveLength(5000);
    isListing = false;
    expect(turns).toBeGreaterThan(5);
  });

  test("of more tools than the limit, or more bytes, is refused", async () => {
    await expect(listsOf(11, 10).tools.get()).rejects.toThrow("The server lists more than 10 tools");
    await expect(listsOf(11, 100, 100).tools.get()).rejects.toThrow("longer than 100 bytes");
  });
});
