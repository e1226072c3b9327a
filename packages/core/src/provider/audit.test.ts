import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { FakePipe, type Reaction } from "../../../../test/support/fake-pipe.ts";
import { modernScript, text } from "../../../../test/support/fake-script.ts";
import { callTool } from "../../../../test/support/use-provider.ts";
import type { Client } from "../../../client/src/client/client.ts";
import { connect, type ConnectOptions } from "../../../client/src/client/connect.ts";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { RawJson } from "../json/raw.ts";
import type { AuditOptions, AuditRecord } from "./audit.ts";
import { createAudit } from "./audit.ts";
import { createCallContext } from "./context.ts";

const measure = {
  name: "measure",
  inputSchema: { type: "object", properties: { key: { type: "string" } } },
  outputSchema: { type: "object", required: ["celsius"] },
};

async function connectAudited(
  call: () => Reaction,
  audit: Partial<AuditOptions> = {},
  options: ConnectOptions = {},
): Promise<{ client: Client; records: AuditRecord[]; pipe: FakePipe }> {
  const records: AuditRecord[] = [];
  const pipe = new FakePipe(modernScript({ tools: [measure], call }));
  const sink = (record: AuditRecord): void => void records.push(record);
  const client = await connect(pipe.target, { ...options, audit: { sink, ...audit } });
  return { client, records, pipe };
}

const complete = (result: object): Reaction => ({ result: { resultType: "complete", ...result } });
const good = complete({ content: [], structuredContent: { celsius: 1 } });

describe("each call leaves one record", () => {
  test("with everything about it", async () => {
    const clock = createVirtualClock(Date.parse("2026-01-02T03:04:05Z"));
    const { client, records } = await connectAudited(() => good, {}, { clock });
    const args = { key: "ü" };
    await client.callTool("measure", args, { caller: "ada" });
    const bytes = JSON.stringify(args);
    expect(records).toEqual([
      {
        time: "2026-01-02T03:04:05.000Z",
        call: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
        trace: undefined,
        caller: "ada",
        server: "a pair of streams",
        tool: "measure",
        era: "modern",
        revision: "2026-07-28",
        argumentsDigest: createHash("sha256").update(bytes).digest("hex"),
        outcome: "ok",
        delivery: undefined,
        bytesSent: Buffer.byteLength(bytes),
        bytesReceived: expect.any(Number) as unknown,
        durationMs: 0,
      },
    ]);
    expect(records[0]?.bytesReceived).toBeGreaterThan(20);
  });

  test.each<[string, () => Reaction, object, Partial<AuditRecord>]>([
    ["succeeds", () => good, {}, { outcome: "ok", delivery: undefined }],
    ["fails in the tool", () => complete({ ...text("no"), isError: true }), {}, { outcome: "tool_error" }],
    [
      "is refused by the server",
      () => ({ error: { code: -32603, message: "no" } }),
      {},
      { outcome: "rpc.other", delivery: "answered" },
    ],
    [
      "does not fit",
      () => good,
      { key: 5 },
      { outcome: "refused", code: "client.invalid_arguments", delivery: "not_sent", bytesSent: 0 },
    ],
    [
      "returns what does not fit",
      () => complete(text("?")),
      {},
      { outcome: "client.invalid_output", delivery: "answered" },
    ],
  ])("that %s", async (_, call, args, expected) => {
    const { client, records } = await connectAudited(call);
    await client.callTool("measure", args).catch(() => {});
    expect(records).toHaveLength(1);
    expect(records[0]).toMatchObject({ tool: "measure", era: "modern", ...expected });
  });

  test("that times out, is given up or loses its server", async () => {
    const clock = createVirtualClock();
    const { client, records, pipe } = await connectAudited(() => undefined, {}, { clock });
    const controller = new AbortController();
    const calls = [
      client.callTool("measure", {}, { timeoutMs: 100 }),
      client.callTool("measure", {}, { signal: controller.signal }),
      client.callTool("measure", {}),
    ].map((call) => call.catch(() => {}));
    await pipe.until(() => pipe.methods.filter((method) => method === "tools/call").length === 3);
    await clock.advance(100);
    controller.abort();
    await clock.advance(0);
    pipe.end();
    await Promise.all(calls);
    expect(records.map(({ outcome, delivery, durationMs }) => [outcome, delivery, durationMs])).toEqual([
      ["client.timeout", "outcome_unknown", 100],
      ["client.aborted", "outcome_unknown", 100],
      ["channel.closed", "outcome_unknown", 100],
    ]);
  });

  test("that throws its tool's failure", async () => {
    const { client, records } = await connectAudited(() => complete({ ...text("no"), isError: true }));
    await client.callTool("measure", {}, { throwOnToolError: true }).catch(() => {});
    expect(records).toMatchObject([{ outcome: "tool_error" }]);
  });

  test("that is forwarded, with its caller and its trace", async () => {
    const { client, records } = await connectAudited(() => good);
    const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const context = createCallContext({ caller: "grace", meta: RawJson.fromValue({ traceparent: trace }) });
    await callTool(client, "measure", {}, context);
    expect(records).toMatchObject([{ caller: "grace", trace, outcome: "ok" }]);
  });
});

describe("arguments", () => {
  test("are not in the record unless asked for, and then only redacted", async () => {
    const secret = { key: "sk-secret" };
    const plain = await connectAudited(() => good);
    await plain.client.callTool("measure", secret);
    expect(JSON.stringify(plain.records)).not.toContain("sk-secret");
    const redact = (args: unknown): unknown => ({ ...(args as object), key: "[redacted]" });
    const redacted = await connectAudited(() => good, { redact });
    await redacted.client.callTool("measure", secret);
    expect(redacted.records).toMatchObject([{ arguments: { key: "[redacted]" } }]);
    expect((await redacted.pipe.heard("tools/call")).params).toMatchObject({ arguments: secret });
  });

  test("whose redaction fails are left out, and the call is none the worse", async () => {
    const redact = (): never => {
      throw new Error("clumsy");
    };
    const { client, records } = await connectAudited(() => good, { redact });
    await client.callTool("measure", { key: "sk-secret" });
    expect(records).toMatchObject([{ outcome: "ok", arguments: "[redaction failed]" }]);
  });
});

describe("a sink", () => {
  const record = { tool: "t" } as AuditRecord;

  test("that stalls delays a call by the bound and no more", async () => {
    const clock = createVirtualClock();
    let isTaken = false;
    const { client } = await connectAudited(
      () => good,
      { sink: () => ((isTaken = true), new Promise(() => {})), maxWaitMs: 50 },
      { clock },
    );
    let isDone = false;
    const call = client.callTool("measure").then(() => (isDone = true));
    await expect.poll(() => isTaken && clock.sleeping === 1).toBe(true);
    await clock.advance(49);
    expect(isDone).toBe(false);
    await clock.advance(1);
    await call;
    expect(clock.now()).toBe(50);
  });

  test("that stalls for good gets no more than it may hold, and dropped records are counted", async () => {
    const clock = createVirtualClock();
    const dropped: number[] = [];
    const records: AuditRecord[] = [];
    const sink = (taken: AuditRecord): Promise<void> => (records.push(taken), new Promise(() => {}));
    const audit = createAudit({ sink, maxWaiting: 3, onDropped: (count) => dropped.push(count) }, clock);
    for (let index = 0; index < 5; index++) void audit.record(record);
    expect(records).toHaveLength(3);
    expect(dropped).toEqual([1, 2]);
  });

  test.each<[string, () => Promise<void>]>([
    [
      "throws",
      () => {
        throw new Error("full");
      },
    ],
    ["rejects", () => Promise.reject(new Error("full"))],
  ])("that %s fails no call, and is reported", async (_, sink) => {
    const failed: unknown[] = [];
    const { client } = await connectAudited(() => good, { sink, onFailed: (error) => failed.push(error) });
    expect(await client.callTool("measure")).toMatchObject({ structuredContent: { celsius: 1 } });
    expect(failed).toMatchObject([{ message: "full" }]);
  });
});
