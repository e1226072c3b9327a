// What the user of a client puts into `_meta`, beside what the client writes there.
import { describe, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import type { AuditRecord } from "../../packages/core/src/provider/audit.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { FakePipe } from "../support/fake-pipe.ts";
import { legacyScript, modernScript } from "../support/fake-script.ts";

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const version = "io.modelcontextprotocol/protocolVersion";
const level = "io.modelcontextprotocol/logLevel";

describe("_meta of a request", () => {
  test("is merged with that of the client, so that a server takes it", async () => {
    const registry = createRegistry();
    registry.register("echo", {}, () => "hi");
    const server = createServer(registry, { name: "own", version: "1" });
    await using client = await connect({ server });
    const params = { name: "echo", arguments: {}, _meta: { traceparent } };
    await expect(client.request("tools/call", params)).resolves.toMatchObject({ content: [{ text: "hi" }] });
  });

  test("keeps what the client does not say, and the client's word where both do", async () => {
    const pipe = new FakePipe(modernScript({}));
    await using client = await connect(pipe.target);
    const _meta = { traceparent, [version]: "1999-01-01", [level]: "debug", progressToken: 1 };
    await client.request("tools/call", { name: "echo", arguments: {}, _meta });
    const { params } = await pipe.heard("tools/call");
    expect(params?.["_meta"]).toMatchObject({ traceparent, [version]: "2026-07-28", [level]: "debug" });
    expect(params?.["_meta"]).not.toHaveProperty("progressToken");
    expect(params).toMatchObject({ name: "echo", arguments: {} });
  });

  test("that is not an object is refused", async () => {
    const pipe = new FakePipe(modernScript({}));
    await using client = await connect(pipe.target);
    await expect(client.request("ping", { _meta: "trace" })).rejects.toThrow("_meta must be an object");
  });
});

describe.each([
  ["modern", modernScript],
  ["legacy", legacyScript],
] as const)("a call to a %s server", (_, toScript) => {
  test("takes trace context along, and the audit has it", async () => {
    const pipe = new FakePipe(toScript({}));
    const records: AuditRecord[] = [];
    const sink = (record: AuditRecord): void => void records.push(record);
    await using client = await connect(pipe.target, { audit: { sink } });
    const meta = { traceparent, [level]: "debug", "example.com/a": [1] };
    await client.callTool("echo", { message: "hi" }, { meta, logLevel: "error", onEvent: () => {} });
    const { params } = await pipe.heard("tools/call");
    expect(params?.["_meta"]).toMatchObject({ traceparent, "example.com/a": [1] });
    expect(params?.["_meta"]).not.toMatchObject({ [level]: "debug" });
    expect(records).toMatchObject([{ trace: traceparent, outcome: "ok" }]);
  });

  test("and any other request take along what their user says", async () => {
    const pipe = new FakePipe(toScript({}));
    await using client = await connect(pipe.target);
    await client.request("tools/call", { name: "echo", arguments: {}, _meta: { traceparent } });
    const { params } = await pipe.heard("tools/call");
    expect(params).toMatchObject({ name: "echo", _meta: { traceparent } });
  });
});
