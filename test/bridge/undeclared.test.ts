// Legacy servers that ask for what their caller has not declared, or what its revision cannot express.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LegacyRevision } from "../../packages/core/src/mcp/revision.ts";
import { connectLegacy, HttpWire, legacyCall, modernCall, modernMeta } from "../support/http-wire.ts";
import { type HttpFront, startHttpFront } from "./support/front.ts";
import { fixture } from "./support/upstream.ts";

type Kind = "form" | "several" | "url" | "sample" | "tools" | "roots" | "other";

const told = (text: object): object => ({ content: [{ type: "text", text: JSON.stringify(text) }] });

async function modernAsk(front: HttpFront, kind: Kind, capabilities: object, needs = false): Promise<object> {
  using wire = new HttpWire(front.listener.port, "2026-07-28");
  return await wire.ask(modernCall("up__ask", { kind, needs }, { _meta: modernMeta(capabilities) }));
}

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

  test.each<[Kind, object, number]>([
    ["form", {}, -32601],
    ["url", {}, -32601],
    ["sample", {}, -32601],
    ["roots", {}, -32601],
    ["form", { roots: {} }, -32601],
    ["sample", { roots: {} }, -32601],
    ["roots", { sampling: {} }, -32601],
    ["url", { elicitation: {} }, -32602],
    ["tools", { sampling: {} }, -32602],
  ])("for %s, of a modern caller with %j, is answered %i, and ends its call itself", async (...given) => {
    const [kind, capabilities, code] = given;
    expect(await modernAsk(front, kind, capabilities)).toMatchObject({ result: told({ refused: code }) });
  });
});

describe.each(["stdio", "http"] as const)("a server over %s that asks anyway", (way) => {
  describe.each(["shared", "perSession", "exclusive"] as const)("on connections that are %s", (sharing) => {
    let front: HttpFront;
    let child: ChildProcess | undefined;

    beforeAll(async () => {
      const script = fixture("bridge-rude.mjs");
      let entry: object = { command: process.execPath, args: [script] };
      if (way === "http") {
        child = fork(script, ["--http"]);
        const [port] = (await once(child, "message")) as [number];
        entry = { type: "http", url: `http://127.0.0.1:${port}/mcp` };
      }
      front = await startHttpFront({
        mcpServers: { up: entry },
        junctor: { servers: { up: { sharing, maxConnections: 64 } } },
      });
    });
    afterAll(async () => {
      await front?.[Symbol.asyncDispose]();
      child?.kill();
    });

    const kinds = ["form", "sample", "roots"] as const;
    const others = {
      form: { sampling: {}, roots: {} },
      sample: { elicitation: {}, roots: {} },
      roots: { elicitation: {}, sampling: {} },
    };

    test.each(kinds)("for %s is answered for a modern caller that cannot be asked", async (kind) => {
      for (const capabilities of [{}, others[kind]])
        expect(await modernAsk(front, kind, capabilities)).toMatchObject({
          result: told({ refused: -32601 }),
        });
    });

    // Over HTTP a server is told what each caller declared, and refuses the call itself.
    const untold = way === "stdio" ? kinds : [];
    test.each(untold)("for %s and fails without it tells a modern caller what it lacks", async (kind) => {
      const lacks = { form: "elicitation", sample: "sampling", roots: "roots" };
      for (const capabilities of [{}, others[kind]])
        expect(await modernAsk(front, kind, capabilities, true)).toMatchObject({
          error: {
            code: -32021,
            message: expect.stringMatching(/: \w+\. \{"refused":-32601\}$/) as string,
            data: { requiredCapabilities: { [lacks[kind]]: {} } },
          },
        });
    });

    test.each(kinds)("for %s is answered for a legacy caller that cannot be asked", async (kind) => {
      for (const capabilities of [{}, others[kind]]) {
        using wire = await connectLegacy(front.listener.port, "2025-11-25", capabilities);
        const reply = await (await wire.post(legacyCall(1, "up__ask", { kind }))).complete;
        expect(reply.messages).toMatchObject([{ id: 1, result: told({ refused: -32601 }) }]);
      }
    });
  });
});
