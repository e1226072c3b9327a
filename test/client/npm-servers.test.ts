// Servers people run, from npm, as they run them: over stdio.
import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ChildCommand } from "../../packages/client/src/child/child.ts";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { legacyRevisions } from "../../packages/core/src/mcp/revision.ts";
import type { ToolResult } from "../../packages/core/src/mcp/types.ts";
import type { CallEvent } from "../../packages/core/src/provider/context.ts";

function server(name: string, args: readonly string[] = [], env = {}): ChildCommand {
  const path = `../../node_modules/@modelcontextprotocol/server-${name}/dist/index.js`;
  return { command: process.execPath, args: [fileURLToPath(new URL(path, import.meta.url)), ...args], env };
}

const handlers = {
  elicit: () => ({ action: "accept", content: { name: "Ada" } }) as const,
  sample: () => ({ role: "assistant", model: "m-1", content: { type: "text", text: "roses" } }) as const,
  roots: () => [{ uri: "file:///home/ada" }],
};
const textOf = async (call: Promise<ToolResult>): Promise<string> => JSON.stringify((await call).content);

let folder: string;
beforeAll(async () => void (folder = await realpath(await mkdtemp(join(tmpdir(), "junctor-npm-")))));
afterAll(() => rm(folder, { recursive: true }));

describe("server-everything", () => {
  let client: Client;
  const warnings: string[] = [];
  beforeAll(async () => {
    const onWarning = (text: string): void => void warnings.push(text);
    client = await connect(server("everything"), { handlers, onWarning, eras: createEraCache() });
  });
  afterAll(() => client[Symbol.asyncDispose]());

  test("is found to be a legacy server, and lists what it has", async () => {
    expect((await client.agreement()).mode).toEqual({ kind: "legacy", revision: "2025-11-25" });
    const names = (await client.listTools()).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["echo", "get-sum", "get-structured-content"]));
    expect(await client.availableTools()).toBe(true);
    expect((await client.listPrompts()).length).toBeGreaterThan(2);
    expect((await client.listResources()).length).toBeGreaterThan(2);
    expect((await client.listResourceTemplates()).length).toBeGreaterThan(0);
    expect(warnings).toEqual([]);
  });

  test("answers calls, with structure and images", async () => {
    expect(await textOf(client.callTool("echo", { message: "hi" }))).toContain("Echo: hi");
    expect(await textOf(client.callTool("get-sum", { a: 2, b: 3 }))).toContain("5");
    const weather = await client.callTool("get-structured-content", { location: "Chicago" });
    expect(weather.structuredContent).toMatchObject({ temperature: expect.any(Number) as unknown });
    const { content } = await client.callTool("get-tiny-image");
    expect(content.map(({ type }) => type)).toContain("image");
  });

  test("is not sent what does not fit", async () => {
    await expect(client.callTool("get-sum", { a: "two", b: 3 })).rejects.toMatchObject({
      name: "ValidationError",
      delivery: "not_sent",
    });
  });

  test("reports progress", async () => {
    const seen: CallEvent[] = [];
    const args = { duration: 0.2, steps: 4 };
    const onEvent = (event: CallEvent): void => void seen.push(event);
    await client.callTool("trigger-long-running-operation", args, { onEvent });
    expect(seen.map((event) => event.kind === "progress" && event.progress)).toEqual([1, 2, 3, 4]);
  });

  test("gets its questions answered", async () => {
    expect(await textOf(client.callTool("trigger-elicitation-request"))).toContain("Ada");
    const asked = { prompt: "a poem", maxTokens: 10 };
    expect(await textOf(client.callTool("trigger-sampling-request", asked))).toContain("roses");
    expect(await textOf(client.callTool("get-roots-list"))).toContain("file:///home/ada");
  });

  test("gives resources and prompts, and completes", async () => {
    const [resource] = await client.listResources();
    expect((await client.readResource(resource!.uri)).contents).toHaveLength(1);
    expect(await client.getPrompt("simple-prompt")).toMatchObject({ messages: [{ role: "user" }] });
    const ref = { type: "ref/prompt", name: "completable-prompt" } as const;
    const { values } = await client.complete(ref, { name: "department", value: "E" });
    expect(values).toContain("Engineering");
  });

  test("can be watched", async () => {
    const [resource] = await client.listResources();
    (await client.watchResource(resource!.uri, () => {}))();
  });
});

test.each(legacyRevisions)("server-everything speaks %s when asked to", async (revision) => {
  await using client = await connect(server("everything"), { revision });
  expect((await client.agreement()).mode.revision).toBe(revision);
  expect(await textOf(client.callTool("echo", { message: revision }))).toContain(revision);
});

describe("server-filesystem", () => {
  test("reads and writes in its folder, and refuses to leave it", async () => {
    await writeFile(join(folder, "note.txt"), "buy milk");
    await using client = await connect(server("filesystem", [folder]));
    expect(await textOf(client.callTool("read_text_file", { path: join(folder, "note.txt") }))).toContain(
      "buy milk",
    );
    await client.callTool(
      "write_file",
      { path: join(folder, "new.txt"), content: "ü" },
      { throwOnToolError: true },
    );
    expect(await textOf(client.callTool("list_directory", { path: folder }))).toContain("new.txt");
    expect(await client.callTool("read_text_file", { path: "/etc/passwd" })).toMatchObject({ isError: true });
    const thrown = client.callTool("read_text_file", { path: "/etc/passwd" }, { throwOnToolError: true });
    await expect(thrown).rejects.toMatchObject({
      name: "ToolError",
      message: expect.stringMatching(/denied/i) as unknown,
    });
  });

  test("that cannot start says why, in its own words", async () => {
    const connecting = connect(server("filesystem", ["/no/such/folder"]), { eras: createEraCache() });
    await expect(connecting).rejects.toMatchObject({
      name: "ConnectError",
      stderr: expect.stringContaining("/no/such/folder") as unknown,
    });
  });
});

test("server-memory keeps what it is told", async () => {
  const env = { MEMORY_FILE_PATH: join(folder, "memory.jsonl") };
  await using client = await connect(server("memory", [], env));
  const entities = [{ name: "Ada", entityType: "person", observations: ["likes engines"] }];
  const created = await client.callTool("create_entities", { entities });
  expect(created.isError).not.toBe(true);
  expect(await textOf(client.callTool("search_nodes", { query: "engines" }))).toContain("Ada");
  const wrong = client.callTool("create_entities", { entities: [{ name: "Bob" }] });
  await expect(wrong).rejects.toMatchObject({
    name: "ValidationError",
    message: expect.stringContaining("entityType") as unknown,
  });
});
