import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createPromptRegistry } from "../../packages/server/src/registry/prompts.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createResourceRegistry } from "../../packages/server/src/registry/resources.ts";
import { loadSkills } from "../../packages/server/src/skills/load-skills.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { junctor } from "../support/junctor-bin.ts";

let http: HttpListener;
let folder = "";
const manifest = "---\nname: refunds\ndescription: About refunds\n---\nSee late.md\n";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "junctor-listing-"));
  await mkdir(join(folder, "refunds"));
  await writeFile(join(folder, "refunds/SKILL.md"), manifest);
  await writeFile(join(folder, "refunds/late.md"), "Half.\n");
  const resources = createResourceRegistry();
  resources.register(
    "note://today",
    { name: "today", mimeType: "text/plain", description: "A note" },
    () => "buy milk",
  );
  resources.register("note://pixel", { name: "pixel" }, () => Uint8Array.of(0x89, 0x50));
  resources.registerTemplate("note://{day}", { name: "by day" }, ({ variables }) => `of ${variables["day"]}`);
  const prompts = createPromptRegistry();
  prompts.register(
    "review",
    {
      description: "Reviews \u001b[31mcode",
      arguments: [{ name: "code", required: true }, { name: "tone" }],
    },
    ({ code }) => `Review ${code}`,
  );
  const registry = createRegistry({ resources, prompts, skills: await loadSkills(folder) });
  const properties = {
    to: { type: "string", description: "A street or a city" },
    days: { type: "integer", description: "How long", default: 3 },
  };
  registry.register(
    "trip",
    {
      title: "Plan a trip",
      description: "Plans a trip.\nTakes a while.",
      input: { type: "object", properties, required: ["to"] },
      annotations: { readOnlyHint: true },
    },
    () => "planned",
  );
  http = await listenHttp(createServer(registry, { name: "many", version: "1.0.0" }), { port: 0 });
});
afterAll(async () => {
  await http[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const run = (...args: readonly string[]) => junctor([...args, "--server", http.url]);

test("resources and templates are a table, and who serves them is a note", async () => {
  expect(await run("resources")).toEqual({
    code: 0,
    stdout: [
      "skill://refunds/SKILL.md  text/markdown  refunds  About refunds",
      "note://today              text/plain     today    A note",
      "note://pixel                             pixel",
      "note://{day}                             by day",
      "",
    ].join("\n"),
    stderr: "many 1.0.0, protocol 2026-07-28: 4 resources and templates\n",
  });
});

test("a resource is read as it is, also one of a template", async () => {
  expect(await run("resources", "read", "note://today")).toEqual({ code: 0, stdout: "buy milk", stderr: "" });
  expect(await run("resources", "read", "note://monday")).toMatchObject({ stdout: "of monday" });
  const { stdout } = await run("resources", "read", "note://today", "--json");
  expect(JSON.parse(stdout)).toMatchObject({ contents: [{ uri: "note://today", text: "buy milk" }] });
});

test("a resource that is not there ends with the code of a protocol error", async () => {
  expect(await run("resources", "read", "nothing://here")).toMatchObject({ code: 3, stdout: "" });
});

test("prompts are a table without control characters, and one is got with its arguments", async () => {
  expect(await run("prompts")).toMatchObject({
    code: 0,
    stdout: "review  code=… [tone=…]  Reviews [31mcode\n",
  });
  expect(await run("prompts", "get", "review", "code=x = 1")).toMatchObject({
    code: 0,
    stdout: "user: Review x = 1\n",
  });
  expect(await run("prompts", "get", "review", "x")).toMatchObject({ code: 2 });
});

test("skills are listed, and read when their files are as listed", async () => {
  expect(await run("skills")).toMatchObject({
    code: 0,
    stdout: "skill://refunds/SKILL.md  2 files  About refunds\n",
  });
  expect(await run("skills", "read", "skill://refunds/SKILL.md")).toEqual({
    code: 0,
    stdout: manifest,
    stderr: "",
  });
  expect(await run("skills", "read", "skill://refunds/SKILL.md", "late.md")).toMatchObject({
    stdout: "Half.\n",
  });
  const wrong = await run("skills", "read", "skill://refunds/SKILL.md", "../secret");
  expect(wrong).toMatchObject({ code: 3, stdout: "" });
  expect(wrong.stderr).toContain("was not read");
});

test("call TOOL --help shows what the tool takes", async () => {
  expect(await run("call", "trip", "--help")).toEqual({
    code: 0,
    stderr: "",
    stdout: [
      "Usage: junctor call trip to=string [days=integer]",
      "",
      "Plan a trip",
      "",
      "Plans a trip.",
      "Takes a while.",
      "",
      "Arguments:",
      "  to=string     required; A street or a city",
      "  days=integer  How long (default 3)",
      "",
      "Its server says that it changes nothing.",
      "",
      "junctor call --help shows the flags.",
      "",
    ].join("\n"),
  });
});

test("call --help without a tool, or where no server answers, shows the help of the command", async () => {
  const general = await junctor(["call", "--help"]);
  expect(general).toMatchObject({ code: 0, stderr: "" });
  expect(general.stdout).toContain("Usage: junctor call TOOL");
  const unreachable = await junctor(["call", "trip", "--help", "--server", "http://127.0.0.1:9/mcp"]);
  expect(unreachable).toMatchObject({ code: 0, stdout: general.stdout });
  expect(unreachable.stderr).toContain("127.0.0.1:9");
  const unknown = await run("call", "trap", "--help");
  expect(unknown.stderr).toContain("did you mean trip?");
});

test.each([
  [["resources", "read"], "write junctor resources read URI"],
  [["prompts", "get"], "write junctor prompts get PROMPT [KEY=VALUE…]"],
  [["skills", "http://a.test", "http://b.test"], "junctor skills read URI [FILE] --server URL"],
])("%j is refused with what to write instead", async (args, reason) => {
  const { code, stderr } = await junctor(args);
  expect(code).toBe(2);
  expect(stderr).toContain(reason);
});
