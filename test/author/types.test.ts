import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { printServerTypes } from "../../packages/junctor/src/author/index.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createPromptRegistry } from "../../packages/server/src/registry/prompts.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { root } from "../source-graph.ts";
import { junctor } from "../support/junctor-bin.ts";
import { runs } from "../support/runs.ts";

const project = mkdtempSync(join(tmpdir(), "junctor-author-types-"));
beforeAll(() => {
  // Where a program finds @junctor/client and what it needs.
  symlinkSync(join(root, "node_modules"), join(project, "node_modules"));
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

/** What the compiler says of files of the project; empty when they compile. */
function compile(files: { readonly [name: string]: string }): string {
  const names = Object.keys(files);
  for (const name of names) {
    mkdirSync(join(project, name, ".."), { recursive: true });
    writeFileSync(join(project, name), files[name] ?? "");
  }
  const flags = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--skipLibCheck"];
  const target = ["--module", "nodenext", "--target", "es2022", "--lib", "es2022,esnext.disposable,dom"];
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const sources = names.filter((name) => name.endsWith(".ts"));
  try {
    const words = [tsc, ...flags, ...target, "--types", "node", ...sources];
    return execFileSync(process.execPath, words, { cwd: project, encoding: "utf8" });
  } catch (error) {
    return (error as { readonly stdout: string }).stdout;
  }
}

const keyword = fc.constantFrom(
  "string",
  "number",
  "integer",
  "boolean",
  "null",
  "array",
  "object",
  "odd",
  7,
);
const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.constantFrom(
    "*/",
    "__proto__",
    "constructor",
    "new",
    "`",
    "${x}",
    "\u2028",
    "a-b",
    "0",
    "get",
    "readonly",
  ),
);
const ref = fc.constantFrom(
  "#",
  "#/$defs/a",
  "#/$defs/b",
  "#/$defs/a/properties/x",
  "#/nowhere",
  "https://x.y/z",
  "#%zz",
);

/** Schemas as a hostile or careless server would write them. */
const { schema } = fc.letrec<{ schema: unknown }>((tie) => {
  const one = tie("schema");
  const some = fc.array(one, { maxLength: 3 });
  const byName = fc.dictionary(text, one, { maxKeys: 3 });
  const sound = fc.record(
    {
      type: fc.oneof(keyword, fc.array(keyword, { maxLength: 3 })),
      description: fc.oneof(text, fc.integer()),
      properties: byName,
      required: fc.array(fc.oneof(text, fc.integer()), { maxLength: 3 }),
      additionalProperties: one,
      patternProperties: byName,
      items: fc.oneof(one, some),
      prefixItems: some,
      allOf: some,
      anyOf: some,
      oneOf: some,
      enum: fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 4 }),
      const: fc.jsonValue({ maxDepth: 2 }),
      nullable: fc.boolean(),
      $ref: ref,
      $defs: fc.record({ a: one, b: one }),
    },
    { requiredKeys: [] },
  );
  return { schema: fc.oneof({ depthSize: "small" }, fc.boolean(), fc.jsonValue({ maxDepth: 1 }), sound) };
});

test("whatever the schemas are, the types of a server compile", { timeout: 300_000 }, () => {
  const files: { [name: string]: string } = {};
  const schemas = fc.sample(fc.record({ name: text, input: schema, output: schema }), runs(3000));
  schemas.forEach(({ name, input, output }, index) => {
    const tool = {
      name,
      description: name,
      inputSchema: input as { type: "object" },
      outputSchema: output as { readonly [keyword: string]: unknown },
    };
    const prompts = [{ name, arguments: [{ name, required: true, description: name }] }];
    files[`random/${index}.ts`] = printServerTypes({ name, tools: [tool], prompts });
  });
  expect(compile(files).split("\n").slice(0, 5)).toEqual([""]);
});

function createWeather(days: z.ZodType): Registry {
  const prompts = createPromptRegistry();
  prompts.register(
    "greet",
    { arguments: [{ name: "name", required: true }] },
    (given) => `Greet ${given["name"]}`,
  );
  const registry = createRegistry({ prompts });
  registry.register(
    "forecast",
    { input: z.object({ city: z.string(), days }), output: z.object({ celsius: z.number() }) },
    () => ({ celsius: 20 }),
  );
  registry.register("ping", {}, () => "pong");
  return registry;
}

const program = (city: string): string => `
import { connect, textOf } from "@junctor/client";
import type { Server } from "./weather.d.ts";
const client = await connect<Server>("http://127.0.0.1:1/mcp");
const result = await client.callTool("forecast", { city: ${city}, days: 2 });
if (!result.isError) console.log(result.structuredContent.celsius.toFixed(1));
console.log(textOf(await client.callTool("ping")));
await client.getPrompt("greet", { name: "Ada" });
for await (const part of client.streamTool("ping", {}, { timeoutMs: 5 })) if (part.kind === "result") break;
await client.close();
`;

async function typesOf(days: z.ZodType): Promise<string> {
  await using http = await listenHttp(
    createServer(createWeather(days), { name: "weather", version: "1.0.0" }),
    {
      port: 0,
    },
  );
  const { code, stdout, stderr } = await junctor(["types", http.url]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "2 tools, 1 prompt\n" });
  return stdout;
}

test("a program that fits the types of a server compiles, and for one that does not the compiler says where", async () => {
  const types = await typesOf(z.number().optional());
  expect(compile({ "weather.d.ts": types, "main.ts": program('"Oslo"') })).toBe("");
  const said = compile({
    "weather.d.ts": types,
    "main.ts": `${program("7")}client.callTool("forcast", {}); client.callTool("forecast");`,
  });
  const mistakes = said.split("\n").filter((line) => /error TS/.test(line));
  expect(mistakes).toEqual([
    expect.stringMatching(/^main\.ts\(5,.*'number' is not assignable to type 'string'/),
    expect.stringMatching(/^main\.ts\(11,.*"forcast".*"forecast"/),
    expect.stringMatching(/^main\.ts\(11,.*Expected 2-3 arguments, but got 1/),
  ]);
});

test("a schema that changed on the server fails the program that relied on it", async () => {
  const types = await typesOf(z.enum(["one", "two"]));
  expect(compile({ "weather.d.ts": types, "main.ts": program('"Oslo"') })).toContain(
    "Type 'number' is not assignable to type '\"one\" | \"two\"'",
  );
});

test("a target that is not a server is one message", async () => {
  const { code, stdout, stderr } = await junctor([
    "types",
    "--",
    process.execPath,
    "-e",
    "console.log('hello')",
  ]);
  expect({ code: code !== 0, stdout }).toEqual({ code: true, stdout: "" });
  expect(stderr.split("\n")[0]).toMatch(/^junctor: /);
});
