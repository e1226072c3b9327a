// Servers that send the user to an address that is not a web page. It reaches no client, in neither era.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { elicitUrl } from "../../packages/core/src/mcp/question.ts";
import { connectLegacy, HttpWire, legacyCall, modernCall, modernMeta } from "../support/http-wire.ts";
import { type HttpFront, startHttpFront } from "./support/front.ts";
import { type AskingUpstream, type EraName, startUpstream } from "./support/upstream.ts";

const lures = [
  "javascript:alert(1)",
  " java\nscript:alert(1)",
  "JAVASCRIPT:alert(1)",
  "data:text/html,<script>alert(1)</script>",
  "file:///etc/passwd",
  "vscode://alert",
  "blob:https://example.com/alert",
  "//alert",
  "",
];
const canVisit = { elicitation: { form: {}, url: {} } };
const eras: readonly EraName[] = ["legacy", "modern"];

describe.each(eras)("a %s server", (serves) => {
  let upstream: AskingUpstream;
  let front: HttpFront;
  beforeAll(async () => {
    upstream = await startUpstream(serves, "stdio");
    front = await startHttpFront({ mcpServers: { up: upstream.entry } });
  });
  afterAll(async () => {
    await front?.[Symbol.asyncDispose]();
    await upstream?.[Symbol.asyncDispose]();
  });

  /** All that a caller of the gateway hears of a call. */
  const hear = async (era: EraName, tool: string, args: object): Promise<string> => {
    using wire =
      era === "legacy"
        ? await connectLegacy(front.listener.port, "2025-11-25", canVisit)
        : new HttpWire(front.listener.port, "2026-07-28");
    const reply = await wire.post(
      era === "legacy" ? legacyCall(1, tool, args) : modernCall(tool, args, { _meta: modernMeta(canVisit) }),
    );
    await reply.complete;
    return JSON.stringify(reply.messages);
  };

  test.each(eras)("cannot send the user of a %s caller there", async (era) => {
    for (const lure of lures) {
      const heard = await hear(era, "up__ask", { nonce: lure, rounds: [["lure"]] });
      expect(heard).not.toContain("elicitation/create");
      // A legacy server is told; the call of a modern one, which asks in its result, fails.
      expect(heard).toContain(serves === "legacy" ? String.raw`{\"refused\":-32602}` : "not http or https");
    }
  });

  test.each(eras)("cannot make a %s caller visit it first", async (era) => {
    for (const url of lures) {
      const heard = await hear(era, "up__visit", { nonce: `${era}${url}`, url });
      expect(heard).toContain("gives no http or https address");
      expect(heard).not.toContain("elicitations");
    }
  });

  test("cannot send the user of a client there", async () => {
    const shown: unknown[] = [];
    const handlers = {
      elicitUrl: (params: object) => (shown.push(params), { action: "accept" as const, content: {} }),
    };
    const { command, args } = upstream.entry as {
      readonly command: string;
      readonly args: readonly string[];
    };
    await using client = await connect({ command, args }, { handlers });
    for (const nonce of lures) {
      const called = client.callTool("ask", { nonce, rounds: [["lure"]] });
      const told = await called.then((result) => JSON.stringify(result.content), String);
      expect(told).toContain(serves === "legacy" ? "refused" : "not http or https");
    }
    expect(shown).toEqual([]);
    await client.callTool("ask", { nonce: "https://example.com/", rounds: [["lure"]] });
    expect(shown).toMatchObject([{ url: "https://example.com/" }]);
  });
});

test.each(lures)("a tool of ours cannot ask for %j", (lure) => {
  expect(() => elicitUrl("Click", lure)).toThrow(/not an http or https address/);
});
