import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connect } from "../packages/client/src/client/connect.ts";
import { root } from "./source-graph.ts";
import { runNode, spawnNode } from "./support/child.ts";
import { junctor } from "./support/junctor-bin.ts";

const fileOf = (name: string): string => join(root, "examples", name);
const server = (name: string): readonly string[] => ["--", process.execPath, fileOf(name)];

test("every example is run here", () => {
  expect(readdirSync(join(root, "examples"))).toEqual([
    "ask-the-user.mjs",
    "client.mjs",
    "compose.mjs",
    "gateway.mjs",
    "hello-server.mjs",
    "http-server.mjs",
    "middleware.mjs",
    "resources-and-prompts.mjs",
  ]);
});

test("client.mjs, with hello-server.mjs", async () => {
  const { code, stdout, stderr } = await runNode("examples/client.mjs");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.split("\n")).toEqual([
    "hello speaks 2026-07-28",
    "- add: Adds two numbers.",
    "- count: Counts, as it happens.",
    "add: 5",
    "so far: 1 ",
    "so far: 2 ",
    "so far: 3 ",
    "count: 1 2 3 ",
    "refused: /a not_sent",
    "",
  ]);
});

test.each(["2026-07-28", "2025-11-25"] as const)("ask-the-user.mjs asks a client of %s", async (revision) => {
  const target = { command: process.execPath, args: [fileOf("ask-the-user.mjs")] };
  const content = { guests: 4, isOutside: true };
  const elicit = (): { action: "accept"; content: typeof content } => ({ action: "accept", content });
  await using client = await connect(target, { revision, handlers: { elicit } });
  const result = await client.callTool("book");
  expect(result.content).toEqual([{ type: "text", text: "Booked for 4, outside, after 0 s of thinking." }]);
});

test("resources-and-prompts.mjs", async () => {
  const { stdout } = await junctor(["call", "note", "text=buy milk", ...server("resources-and-prompts.mjs")]);
  expect(stdout).toBe("Noted as 2.\n[link: Note 2, note://2]\n");
});

test("compose.mjs, with two servers behind it", async () => {
  const target = { command: process.execPath, args: [fileOf("compose.mjs")] };
  let stderr = "";
  await using client = await connect(target, {
    onStderr: (chunk) => (stderr += Buffer.from(chunk).toString()),
  });
  const names = (await client.listTools()).map(({ name }) => name);
  expect(names).toEqual(["hello__add", "bookings__book", "local__ping"]);
  expect((await client.callTool("hello__add", { a: 1, b: 2 })).content).toMatchObject([{ text: "3" }]);
  await expect(client.callTool("hello__count", { to: 1 })).rejects.toMatchObject({ rpcCode: -32602 });
  await expect.poll(() => stderr).toContain("hello__add: complete");
});

test("gateway.mjs, with two servers behind it", async () => {
  const { code, stdout, stderr } = await runNode("examples/gateway.mjs");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.split("\n")).toEqual([
    "local is up, 2026-07-28",
    "hello is up, 2026-07-28",
    "bookings is up, 2026-07-28",
    "ping hello__add bookings__book",
    "hello__add: 5",
    "Unknown tool: hello__count",
    "ping hello__add hello__count",
    "",
  ]);
});

test("middleware.mjs", async () => {
  const { code, stdout, stderr } = await runNode("examples/middleware.mjs");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.split("\n")).toEqual([
    "forecast",
    "  audit: forecast ok",
    "Oslo: Sun in Oslo. Ask [redacted] for more.",
    "  audit: forecast refused",
    "Atlantis: Atlantis is under water.",
    "  audit: forecast ok",
    "Rome: Sun in Rome. Ask [redacted] for more.",
    "  audit: forecast refused",
    "Lima: No more than 3 calls a minute are allowed. Try again in 20 s.",
    "  audit: reset_stations refused",
    "reset_stations: Unknown tool: reset_stations",
    "",
  ]);
});

test("http-server.mjs", async () => {
  const child = spawnNode(
    "--import",
    "data:text/javascript,process.env.PORT='0'",
    "examples/http-server.mjs",
  );
  const closed = new Promise((resolve) => child.once("close", resolve));
  const greeting = await new Promise<string>((resolve) =>
    child.stdout.setEncoding("utf8").once("data", resolve),
  );
  const flags = [
    "--server",
    greeting.replace("Listening on ", "").trim(),
    "--header",
    "Authorization: Bearer secret",
  ];
  const [told, failed] = await Promise.all([
    junctor(["call", "forecast", "city=Oslo", ...flags]),
    junctor(["call", "forecast", "city=Atlantis", ...flags]),
  ]);
  expect(told).toMatchObject({ code: 0, stdout: '{"city":"Oslo","celsius":21.5}\n' });
  expect(told.stderr).toContain("[3/3] asking station 3\n");
  expect(failed).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Atlantis is under water") as string,
  });
  child.kill("SIGTERM");
  expect(await closed).toBe(0);
});
