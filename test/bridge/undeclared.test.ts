// Legacy servers that ask for what their caller has not declared, or what its revision cannot express.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LegacyRevision } from "../../src/mcp/revision.ts";
import { connectLegacy, HttpWire, legacyCall, modernCall, modernMeta } from "../support/http-wire.ts";
import { type HttpFront, startHttpFront } from "./support/front.ts";
import { fixture } from "./support/upstream.ts";

type Kind = "form" | "several" | "url" | "sample" | "tools" | "roots" | "other";

describe("a server that asks anyway", () => {
  let front: HttpFront;

  beforeAll(async () => {
    const entry = { command: process.execPath, args: [fixture("bridge-rude.mjs")] };
    front = await startHttpFront({
      mcpServers: { up: entry },
      junctor: { servers: { up: { sharing: "exclusive", maxConnections: 64 } } },
    });
  });
  afterAll(() => front?.[Symbol.asyncDispose]());

  const told = (text: object): object => ({ content: [{ type: "text", text: JSON.stringify(text) }] });

  test.each<[Kind, object, LegacyRevision, number]>([
    // Nothing of the kind can be asked.
    ["form", {}, "2025-11-25", -32601],
    ["url", {}, "2025-11-25", -32601],
    ["sample", {}, "2025-11-25", -32601],
    ["roots", {}, "2025-11-25", -32601],
    ["form", { roots: {} }, "2025-11-25", -32601],
    ["sample", { elicitation: {} }, "2025-06-18", -32601],
    ["roots", { elicitation: {} }, "2025-06-18", -32601],
    ["form", { elicitation: {}, roots: {} }, "2025-03-26", -32601],
    ["other", { elicitation: {} }, "2025-11-25", -32601],
    // Something of the kind can be asked, but not this.
    ["url", { elicitation: {} }, "2025-11-25", -32602],
    ["form", { elicitation: { url: {} } }, "2025-11-25", -32602],
    ["url", { elicitation: { form: {}, url: {} } }, "2025-06-18", -32602],
    ["several", { elicitation: {} }, "2025-06-18", -32602],
    ["tools", { sampling: {} }, "2025-11-25", -32602],
  ])("for %s, of a caller with %j in %s, is answered %i, and ends its call itself", async (...given) => {
    const [kind, capabilities, revision, code] = given;
    using wire = await connectLegacy(front.listener.port, revision, capabilities);
    const reply = await (await wire.post(legacyCall(1, "up__ask", { kind }))).complete;
    expect(reply.messages).toMatchObject([{ id: 1, result: told({ refused: code }) }]);
  });

  const call = async (kind: Kind, capabilities: object): Promise<object> => {
    using wire = new HttpWire(front.listener.port, "2026-07-28");
    return await wire.ask(modernCall("up__ask", { kind }, { _meta: modernMeta(capabilities) }));
  };

  test.each<[Kind, object, object]>([
    ["form", { roots: {} }, { elicitation: { form: {} } }],
    ["url", { elicitation: {} }, { elicitation: { url: {} } }],
    ["sample", { roots: {} }, { sampling: {} }],
    ["tools", { sampling: {} }, { sampling: { tools: {} } }],
    ["roots", { sampling: {} }, { roots: {} }],
  ])("for %s, of a modern caller with %j, has it told what is missing", async (kind, declared, required) => {
    expect(await call(kind, declared)).toMatchObject({
      error: { code: -32021, data: { requiredCapabilities: required } },
    });
  });

  test.each<[Kind, object]>([
    ["form", { elicitation: { form: {} } }],
    ["url", { elicitation: { url: {} } }],
    ["sample", { sampling: {} }],
    ["roots", { roots: {} }],
  ])(
    "for %s, of a modern caller that declares nothing, has it told what is missing",
    async (kind, required) => {
      expect(await call(kind, {})).toMatchObject({
        error: { code: -32021, data: { requiredCapabilities: required } },
      });
    },
  );
});
