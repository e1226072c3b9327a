// What a gateway writes down about calls: in its audit file, and in its log.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import type { AuditRecord } from "../../packages/core/src/provider/audit.ts";
import { createCallContext } from "../../packages/core/src/provider/context.ts";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import type { GatewayLog } from "../../packages/junctor/src/log/log.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { readAuditCalls } from "../support/audit-lines.ts";
import { callTool } from "../support/use-provider.ts";
import { startTestGateway } from "./support/gateway.ts";
import { deadServer, statefulServer } from "./support/servers.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "junctor-audit-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

type Call = (name: string, args?: string, caller?: string) => Promise<void>;

/** Runs calls through a gateway, and gives back what its audit file has when the gateway is closed. */
async function record(config: object, work: (call: Call) => Promise<void>): Promise<readonly AuditRecord[]> {
  const { junctor = {}, ...rest } = config as { readonly junctor?: object };
  const at = await startTestGateway({ ...rest, junctor: { audit: "audit.jsonl", ...junctor } }, { folder });
  await work(async (name, args = "{}", caller) => {
    const context = createCallContext(caller === undefined ? {} : { caller });
    const outcome = callTool(at.gateway.provider, name, RawJson.fromText(args), context);
    await Promise.resolve(outcome).catch(() => {});
  });
  await at[Symbol.asyncDispose]();
  return readAuditCalls(join(folder, "audit.jsonl"));
}

const refused = { outcome: "refused", delivery: "not_sent", bytesSent: 0 };
const mcpServers = { child: statefulServer() };

describe("the audit of a gateway", () => {
  test("names the server of a tool, and both names of the tool", async () => {
    const servers = { child: { tools: { echo: { name: "say" } } } };
    const records = await record({ mcpServers, junctor: { servers } }, async (call) => {
      await call("say", '{"text":"hi"}');
      await call("child__count");
    });
    expect(records).toMatchObject([
      { server: "child", tool: "say", ownName: "echo", outcome: "ok" },
      { server: "child", tool: "child__count", ownName: "count", outcome: "ok" },
    ]);
  });

  test("has every call that was refused, as refused", async () => {
    await writeFile(
      join(folder, "mine.mjs"),
      `export default () => ({
         filterTools: (tools) => tools.filter(({ name }) => name !== "child__die"),
         beforeCall: ({ name }) => { if (name === "child__count") throw new Error("not on Sundays"); },
       });`,
    );
    const sha256 = "0".repeat(64);
    const records = await record(
      {
        mcpServers,
        junctor: {
          deny: ["child__chat"],
          keys: { alice: { sha256, deny: ["child__hold"] } },
          servers: { child: { tools: { grow: { hide: true } } } },
          limits: { tools: { child__echo: { callsPerMinute: 1 } } },
          middleware: ["./mine.mjs"],
        },
      },
      async (call) => {
        await call("child__nothing", "{}", "alice");
        await call("child__grow", "{}", "alice");
        await call("child__chat", "{}", "alice");
        await call("child__hold", "{}", "alice");
        await call("child__echo", '{"text":"hi"}', "mallory");
        await call("child__die", "{}", "alice");
        await call("child__count", "{}", "alice");
        await call("child__echo", '{"text":"hi"}', "alice");
        await call("child__echo", '{"text":"hi"}', "alice");
      },
    );
    const unknown = { ...refused, code: "provider.not_found" };
    expect(records).toMatchObject([
      { tool: "child__nothing", server: "child", ...unknown },
      { tool: "child__grow", server: "child", ownName: "grow", ...unknown },
      { tool: "child__chat", server: "child", ...unknown },
      { tool: "child__hold", server: "child", ...unknown },
      { tool: "child__echo", server: "child", caller: "mallory", ...unknown },
      { tool: "child__die", server: "child", ...unknown },
      { tool: "child__count", server: "child", ...refused, code: "unknown" },
      { tool: "child__echo", server: "child", outcome: "ok" },
      { tool: "child__echo", server: "child", ...refused, code: "tool.rate_limited" },
    ]);
    expect(records).toHaveLength(9);
    expect(records[0]).not.toHaveProperty("ownName");
  });

  test("names the server of a tool that the config takes away, and does with its arguments as that server says", async () => {
    const audit = { arguments: true };
    const records = await record(
      {
        mcpServers: {
          child: { ...statefulServer(), disabledTools: ["chat"] },
          bare: statefulServer(),
          off: { command: "no-such-server", env: { TOKEN: "${NOT_SET_HERE}" } },
          quiet: statefulServer(),
        },
        junctor: {
          servers: {
            child: {
              audit,
              deny: ["count"],
              tools: { grow: { hide: true }, hold: { hide: true, name: "wait" } },
            },
            bare: { prefix: false, deny: ["count"] },
            off: { audit, tools: { find: { name: "search" } } },
          },
        },
      },
      async (call) => {
        await call("child__count", '{"n":1}');
        await call("child__chat", '{"n":2}');
        await call("child__grow", '{"n":3}');
        await call("wait", '{"n":4}');
        await call("child__nothing", '{"n":5}');
        await call("count", '{"n":6}');
        await call("off__anything", '{"n":7}');
        await call("search", '{"n":8}');
        await call("quiet__nothing", '{"n":9}');
        await call("nothing", '{"n":10}');
      },
    );
    expect(records.map((each) => [each.server, each.ownName, each.arguments])).toEqual([
      ["child", "count", { n: 1 }],
      ["child", "chat", { n: 2 }],
      ["child", "grow", { n: 3 }],
      ["child", "hold", { n: 4 }],
      ["child", undefined, { n: 5 }],
      ["bare", "count", undefined],
      ["off", undefined, { n: 7 }],
      ["off", undefined, { n: 8 }],
      ["quiet", undefined, undefined],
      ["gateway", undefined, undefined],
    ]);
  });

  test("distinguishes a server that is down from a call that was refused", async () => {
    const records = await record({ mcpServers: { child: statefulServer() } }, async (call) => {
      await call("child__die");
      await call("child__die");
    });
    expect(records[0]).toMatchObject({
      server: "child",
      outcome: "upstream.lost",
      delivery: "outcome_unknown",
    });
  });

  test("has arguments only for the servers whose settings want it, without secrets", async () => {
    const args = '{"text":"mail ada@example.com","n":1}';
    const records = await record(
      {
        mcpServers: { ...mcpServers, other: statefulServer() },
        junctor: { servers: { child: { audit: { arguments: true } } }, redact: ["email"] },
      },
      async (call) => {
        await call("child__echo", args);
        await call("other__echo", args);
        await call("child__echo", JSON.stringify({ text: "x".repeat(20_000) }));
      },
    );
    expect(records.map((each) => each.arguments)).toEqual([
      { text: "mail [redacted]", n: 1 },
      undefined,
      "[20011 bytes, not recorded]",
    ]);
  });

  test("has arguments for all servers but those whose settings do not want it", async () => {
    const records = await record(
      {
        mcpServers: { ...mcpServers, other: statefulServer() },
        junctor: {
          audit: { file: "audit.jsonl", arguments: true },
          servers: { other: { audit: { arguments: false } } },
        },
      },
      async (call) => {
        await call("child__echo", '{"text":"hi"}');
        await call("other__echo", '{"text":"hi"}');
      },
    );
    expect(records.map((each) => each.arguments)).toEqual([{ text: "hi" }, undefined]);
  });

  test("never has a secret of the config among the arguments", async () => {
    const secret = "a-secret-of-the-config";
    const entry = { ...statefulServer(), env: { KEY: secret } };
    const records = await record(
      { mcpServers: { child: entry }, junctor: { audit: { file: "audit.jsonl", arguments: true } } },
      async (call) => call("child__echo", JSON.stringify({ text: secret })),
    );
    expect(records[0]?.arguments).toEqual({ text: "[secret]" });
  });

  test("has no secret among keys and numbers either, and loses no value by that", async () => {
    const entry = { ...statefulServer(), env: { KEY: "a-secret-of-the-config", PIN: "987654321" } };
    const records = await record(
      {
        mcpServers: { child: entry },
        junctor: {
          servers: { child: { audit: { arguments: true } } },
          redact: ["email", "credit-card"],
        },
      },
      async (call) => {
        await call(
          "child__echo",
          `{"text":"hi","a-secret-of-the-config":1,"ada@example.com":2,"bob@example.com":{"n":3},
            "card":4111111111111111,"long":[6304000000000012344],"exponent":4.111111111111111e15,"pin":987654321}`,
        );
      },
    );
    expect(records[0]?.arguments).toEqual({
      text: "hi",
      "[secret]": 1,
      "[redacted]": 2,
      "[redacted] (2)": { n: 3 },
      card: "[redacted]",
      long: ["[redacted]"],
      exponent: "[redacted]",
      pin: "[secret]",
    });
  });
});

describe("the log of a gateway", () => {
  test("has a line at debug for each call, with all that is known of its end", async () => {
    await using at = await startTestGateway({ mcpServers: { child: statefulServer(), dead: deadServer } });
    const call = (name: string): Promise<unknown> =>
      Promise.resolve(
        callTool(at.gateway.provider, name, { text: "hi" }, createCallContext({ caller: "ada" })),
      ).catch(() => {});
    await call("child__echo");
    await call("child__nothing");
    await call("child__die");
    const lines = at.log.filter(({ text }) => text.startsWith("call of "));
    const known = { caller: "ada", era: "modern", revision: "2026-07-28", ms: expect.any(Number) as number };
    expect(lines).toMatchObject([
      {
        level: "debug",
        text: "call of child__echo: ok",
        facts: { ...known, tool: "child__echo", server: "child", outcome: "ok" },
      },
      {
        level: "debug",
        facts: { ...known, server: "child", outcome: "refused", code: "provider.not_found" },
      },
      {
        level: "debug",
        facts: { ...known, server: "child", outcome: "upstream.lost", delivery: "outcome_unknown" },
      },
    ]);
  });

  test("has nothing of calls where debug is not written", async () => {
    const lines: string[] = [];
    const write = (_: object, text: string): void => void lines.push(text);
    const log: GatewayLog = {
      debug: write,
      info: () => {},
      warn: write,
      error: write,
      isLevelEnabled: (level) => level !== "debug",
    };
    await using gateway = await createGateway({ mcpServers: {} }, { log, local: { own: createRegistry() } });
    await gateway.ready;
    await expect(callTool(gateway.provider, "nothing")).rejects.toThrow("not found");
    expect(lines).toEqual([]);
  });
});
