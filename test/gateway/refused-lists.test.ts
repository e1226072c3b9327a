// One server's definitions never take the others' away: official clients refuse a whole list because of one bad entry.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { junctor } from "../support/junctor-bin.ts";
import { dialects, type GatewayClient, textOf } from "./support/clients.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";
import { statefulServer } from "./support/servers.ts";

const refused = {
  command: process.execPath,
  args: [fileURLToPath(new URL("../fixtures/children/refused-lists.mjs", import.meta.url))],
};
const config = { mcpServers: { refused, good: statefulServer() } };

const mended = [
  "no-schema",
  "no-type",
  "null-schema",
  "php-schema",
  "boolean-property",
  "required-true",
  "null-texts",
  "text-hints",
  "bad-icons",
  "output-nowhere",
  "output-circle",
  "output-pattern",
  "output-id",
  "output-same-id",
  "output-array",
  "output-untyped",
];
const leftOut = ["#20", "#21", "#22", "#23", "text-schema", "string-input", "again"];

let running: TestGateway;
beforeAll(async () => {
  running = await startTestGateway(config);
});
afterAll(() => running[Symbol.asyncDispose]());

const namesOf = (items: readonly { readonly name: string }[]): readonly string[] =>
  items.map(({ name }) => name).toSorted();

describe.each(dialects)("$name", ({ connect }) => {
  let client: GatewayClient;
  beforeAll(async () => void (client = await connect(running.url)));
  afterAll(() => client[Symbol.asyncDispose]());

  test("lists every tool that can be used, of both servers", async () => {
    const names = namesOf(await client.listTools());
    expect(names.filter((name) => name.startsWith("good__")).length).toBeGreaterThan(0);
    expect(names.filter((name) => mended.includes(name.replace("refused__", "")))).toHaveLength(
      mended.length,
    );
    expect(names.filter((name) => name.startsWith("refused__"))).toHaveLength(mended.length + 3);
  });

  test("calls what was mended", async () => {
    for (const { name } of await client.listTools()) {
      const own = name.replace("refused__", "");
      if (mended.includes(own)) expect(textOf(await client.call(name))).toBe(own);
    }
  });

  test("lists every resource, template and prompt that can be used", async () => {
    expect((await client.listResources()).map(({ uri }) => uri)).toEqual(
      expect.arrayContaining(["odd://good", "odd://nameless", "odd://notes"]),
    );
    expect((await client.listTemplates()).map(({ uriTemplate }) => uriTemplate)).toEqual(
      expect.arrayContaining(["odd://{id}", "odd://nameless/{id}"]),
    );
    expect(namesOf(await client.listPrompts())).toEqual(
      expect.arrayContaining(["refused__good", "refused__map", "refused__odd-arguments"]),
    );
  });
});

test("each list says what was mended and left out, and that the server is up all the same", async () => {
  const list = async (method: string): Promise<unknown> => {
    const response = await fetch(running.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method,
        params: {
          _meta: {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
          },
        },
      }),
    });
    const { result } = (await response.json()) as { result: { _meta: { [key: string]: unknown } } };
    return result._meta["junctor/servers"];
  };
  const named = (...names: readonly string[]): unknown =>
    names.map((name) => expect.objectContaining({ name }) as unknown);
  expect(await list("tools/list")).toEqual({
    refused: { status: "up", leftOut: named(...leftOut), mended: named(...mended) },
  });
  expect(await list("resources/list")).toEqual({
    refused: {
      status: "up",
      leftOut: [
        { name: "#4", reason: "uri is missing" },
        { name: "no address", reason: "uri is not an absolute URI" },
        { name: "#6", reason: "it is number 5, not an object" },
      ],
      mended: named("odd://nameless", "odd://notes"),
    },
  });
  expect(await list("resources/templates/list")).toEqual({
    refused: { status: "up", leftOut: named("odd://{unclosed"), mended: named("odd://nameless/{id}") },
  });
  expect(await list("prompts/list")).toEqual({
    refused: { status: "up", leftOut: named("#4"), mended: named("odd-arguments", "map") },
  });
});

test("the log has it once, however often the server is listed", async () => {
  const lines = (): readonly string[] =>
    running.log
      .filter(({ text }) => text.includes("clients would refuse"))
      .map(({ level, text }) => `${level} ${text}`);
  await expect.poll(() => lines().length).toBe(8);
  expect(lines()).toContain(
    `warn refused lists ${leftOut.length} things that clients would refuse: left out`,
  );
  expect(lines()).toContain(`info refused lists ${mended.length} things that clients would refuse: mended`);
  await using client = await dialects[0]!.connect(running.url);
  const listings = async (): Promise<number> => Number(textOf(await client.call("refused__again")));
  const before = await listings();
  await expect.poll(listings).toBeGreaterThan(before);
  expect(lines()).toHaveLength(8);
  expect(running.log.filter(({ text }) => text.includes("Left out of"))).toEqual([]);
});

test("`junctor check` shows it, in words and as JSON, and finds the server fine", async () => {
  const folder = await mkdtemp(join(tmpdir(), "junctor-refused-"));
  try {
    const file = join(folder, "mcp.json");
    await writeFile(file, JSON.stringify({ mcpServers: { refused } }));
    const shown = await junctor(["check", "--config", file, "--timeout", "120"]);
    expect(shown.stderr).toContain("1 of 1 servers are fine");
    expect(shown.code).toBe(0);
    expect(shown.stdout).toContain(
      "refused: 7 tools, 3 resources, 1 resource template, 1 prompt left out, because clients would refuse the whole list:\n" +
        "  tool #20: it is null, not an object\n",
    );
    expect(shown.stdout).toContain(
      "refused: 16 tools, 2 resources, 1 resource template, 2 prompts mended, because clients would refuse the whole list:\n" +
        '  tool no-schema: inputSchema set to {"type":"object"}: it is missing\n',
    );
    expect(shown.stdout).toMatch(/ {2}and \d+ more reasons; --json has all\n/);
    const { stdout } = await junctor(["check", "--config", file, "--timeout", "120", "--json"]);
    const report = JSON.parse(stdout) as { servers: [{ leftOut: unknown[]; mended: unknown[] }] };
    const [status] = report.servers;
    expect(status.leftOut).toHaveLength(12);
    expect(status.mended).toHaveLength(21);
    expect(status.leftOut[4]).toEqual({
      part: "tools",
      name: "text-schema",
      isLeftOut: true,
      reason: 'inputSchema is string "{}", not a JSON Schema of an object',
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
