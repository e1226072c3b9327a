// The official SDKs as servers over HTTP, in every revision they speak.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect, type ConnectOptions } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { legacyRevisions, modernRevisions, type Revision } from "../../packages/core/src/mcp/revision.ts";
import type { ToolResult } from "../../packages/core/src/mcp/types.ts";
import type { CallEvent } from "../../packages/core/src/provider/context.ts";

const handlers = { elicit: () => ({ action: "accept", content: { name: "Ada" } }) as const };
const textOf = async (call: Promise<ToolResult>): Promise<string> => JSON.stringify((await call).content);

let v1: ChildProcess;
let v2: ChildProcess;
let ports: readonly number[];

beforeAll(async () => {
  const start = (name: string): ChildProcess =>
    fork(fileURLToPath(new URL(`../fixtures/${name}.mjs`, import.meta.url)));
  v1 = start("sdk-v1-http");
  v2 = start("sdk-v2-http");
  ports = (await Promise.all([once(v1, "message"), once(v2, "message")])).map(([port]) => port as number);
});
afterAll(async () => {
  const exits = [v1, v2].map((child) => once(child, "exit"));
  v1.disconnect();
  v2.disconnect();
  await Promise.all(exits);
});

const connectTo = (index: 0 | 1, options: ConnectOptions = {}, path = "/mcp"): Promise<Client> =>
  connect(`http://127.0.0.1:${ports[index]}${path}`, { handlers, eras: createEraCache(), ...options });

async function exercise(client: Client): Promise<void> {
  expect((await client.listTools()).map(({ name }) => name)).toEqual(
    expect.arrayContaining(["echo", "count"]),
  );
  expect(await textOf(client.callTool("echo", { message: "ü 🦊" }))).toContain("ü 🦊");
  await expect(client.callTool("echo", {})).rejects.toMatchObject({ name: "ValidationError" });
  const seen: CallEvent[] = [];
  const onEvent = (event: CallEvent): void => void seen.push(event);
  expect(await textOf(client.callTool("count", { to: 5 }, { onEvent }))).toContain("counted to 5");
  expect(seen.map((event) => event.kind === "progress" && event.progress)).toEqual([1, 2, 3, 4, 5]);
  const many = Array.from({ length: 20 }, (_, index) =>
    textOf(client.callTool("echo", { message: `m${index}.` })),
  );
  expect((await Promise.all(many)).every((text, index) => text.includes(`m${index}.`))).toBe(true);
}

describe("SDK v1", () => {
  test("is found to be a legacy server", async () => {
    await using client = await connectTo(0);
    expect((await client.agreement()).mode).toEqual({ kind: "legacy", revision: "2025-11-25" });
    await exercise(client);
  });

  test.each(legacyRevisions)("is called in %s", async (revision) => {
    await using client = await connectTo(0, { revision });
    expect((await client.agreement()).mode.revision).toBe(revision);
    await exercise(client);
  });

  test("asks the user in the middle of a call", async () => {
    await using client = await connectTo(0);
    expect(await textOf(client.callTool("greet"))).toContain("accept Ada");
  });

  test("is called over HTTP+SSE", async () => {
    await using client = await connectTo(0, {}, "/sse");
    expect((await client.agreement()).mode.kind).toBe("legacy");
    await exercise(client);
    expect(await textOf(client.callTool("greet"))).toContain("accept Ada");
  });

  test("that forgot the session is given a new one", async () => {
    await using client = await connectTo(0);
    await client.callTool("echo", { message: "before" });
    v1.send("forget");
    expect(await textOf(client.callTool("echo", { message: "after" }))).toContain("after");
  });

  test("announces new tools", async () => {
    await using client = await connectTo(0);
    const before = await client.listTools();
    let changes = 0;
    client.onChange?.(() => changes++);
    let grown = 0;
    const heard = async (): Promise<number> => {
      if (changes === 0) await client.callTool("grow").then(() => grown++);
      return changes;
    };
    await expect.poll(heard).toBeGreaterThan(0);
    expect(await client.listTools()).toHaveLength(before.length + grown);
  });
});

describe("SDK v2", () => {
  test("is found to be a modern server", async () => {
    await using client = await connectTo(1);
    expect((await client.agreement()).mode).toEqual({ kind: "modern", revision: "2026-07-28" });
    await exercise(client);
  });

  test.each<Revision>([...legacyRevisions, ...modernRevisions])("is called in %s", async (revision) => {
    await using client = await connectTo(1, { revision });
    expect((await client.agreement()).mode.revision).toBe(revision);
    await exercise(client);
  });

  test("gets the headers it wants", async () => {
    await using client = await connectTo(1);
    expect(await textOf(client.callTool("deploy", { region: "Zürich" }))).toContain("Zürich");
  });

  test("gets its questions answered", async () => {
    await using client = await connectTo(1);
    expect(await textOf(client.callTool("greet"))).toContain("accept Ada");
  });
});
