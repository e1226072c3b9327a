import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { connect, textOf } from "../../packages/client/src/index.ts";
import { RawJson } from "../../packages/core/src/json/index.ts";
import { elicit, legacyRevisions, modernRevisions } from "../../packages/core/src/mcp/index.ts";
import {
  createCallContext,
  createOperation,
  failure,
  image,
  inputRequired,
  type Provider,
} from "../../packages/core/src/provider/index.ts";
import {
  accepted,
  connectForTest,
  declined,
  openCassette,
} from "../../packages/junctor/src/testing/index.ts";
import { createPromptRegistry } from "../../packages/server/src/registry/prompts.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";
import { createResourceRegistry } from "../../packages/server/src/registry/resources.ts";
import { bin, junctor } from "../support/junctor-bin.ts";

const folder = mkdtempSync(join(tmpdir(), "junctor-cassettes-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const revisions = [...legacyRevisions, ...modernRevisions];
let count = 0;
const newFile = (): string => join(folder, `${count++}.jsonl`);

function createShop(): Registry {
  const prompts = createPromptRegistry();
  prompts.register(
    "greet",
    { arguments: [{ name: "name", required: true }] },
    (given) => `Greet ${given["name"]}`,
  );
  const resources = createResourceRegistry();
  resources.register("shop://hours", { name: "Hours" }, () => "nine to five");
  const registry = createRegistry({ prompts, resources });
  registry.register("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) =>
    String(a + b),
  );
  registry.register("photo", {}, () => [image(new Uint8Array([1, 2, 3]), "image/png")]);
  registry.register("fail", {}, () => failure("There is no such thing."));
  registry.register("steps", {}, async (_, { progress }) => {
    await progress(1, 2, "half");
    return "done";
  });
  registry.register("buy", { input: z.object({ what: z.string() }) }, ({ what }, { answers }) => {
    const sure = answers.elicited("sure");
    if (sure === undefined) return inputRequired({ sure: elicit(`Buy ${what}?`, {}) });
    const colour = answers.elicited("colour");
    if (sure.action !== "accept") return "Nothing was bought.";
    if (colour === undefined)
      return inputRequired({ colour: elicit("Which colour?", { name: { type: "string" } }, ["name"]) });
    return `Bought a ${String(colour.action === "accept" && colour.content?.["name"])} ${what}.`;
  });
  return registry;
}

const answers = {
  elicit: ({ message }: { readonly message?: unknown }) =>
    message === "Which colour?" ? accepted({ name: "red" }) : accepted(),
};

/** What a client of a revision sees of everything that was recorded. */
async function visit(
  target: Provider,
  revision: (typeof revisions)[number],
  { record, asks = true }: { readonly record?: string; readonly asks?: boolean } = {},
): Promise<unknown> {
  await using app = await connectForTest(target, {
    revision,
    answers,
    ...(record === undefined ? {} : { record }),
  });
  return {
    tools: await app.listTools(),
    add: await app.callTool("add", { a: 1, b: 2 }),
    photo: await app.callTool("photo"),
    fail: await app.callTool("fail"),
    buy: asks ? await app.callTool("buy", { what: "pen" }) : undefined,
    steps: await app.callTool("steps"),
    greet: await app.getPrompt("greet", { name: "Ada" }),
    hours: await app.readResource("shop://hours"),
    events: app.events,
    questions: app.questions,
  };
}

describe.each(revisions)("what a client of %s recorded", (recorded) => {
  const file = newFile();

  test.each(revisions)("a client of %s gets as from the server itself", async (revision) => {
    const shop = createShop();
    // Older clients cannot be asked, and without answers there are none to play back.
    const asks = [recorded, revision].every((each) => each >= "2025-06-18");
    await visit(shop, recorded, { record: file, asks });
    expect(await visit(openCassette(file), revision, { asks })).toEqual(
      await visit(shop, revision, { asks }),
    );
  });
});

test("results are played back byte for byte", async () => {
  const text =
    '{"content":[{"type":"text","text":"é\\u00e9"}],"structuredContent":{"z":1.0,"a":12345678901234567890,"e":1E400}}';
  const odd = {
    ...createShop(),
    list: createShop().list,
    call: () => ({ kind: "complete" as const, result: RawJson.parse(Buffer.from(text)) }),
  };
  const file = newFile();
  await using app = await connectForTest(odd, { record: file });
  await app.callTool("add", { a: 1, b: 2 }, { validate: false });
  const context = createCallContext();
  const outcome = await openCassette(file).call(
    createOperation("tools/call", "add", { arguments: { b: 2, a: 1 } }),
    context,
  );
  expect(outcome.kind === "complete" && outcome.result.text).toBe(text);
});

test("a call that was made several times gives each result in turn", async () => {
  let n = 0;
  const registry = createRegistry();
  registry.register("next", {}, () => String(++n));
  const file = newFile();
  const textsOf = async (target: Provider, record?: string): Promise<readonly unknown[]> => {
    await using app = await connectForTest(target, record === undefined ? {} : { record });
    return [await app.callTool("next"), await app.callTool("next"), await app.callTool("next")];
  };
  const live = await textsOf(registry, file);
  expect(n).toBe(3);
  expect(await textsOf(openCassette(file))).toEqual(live);
});

test("what was not recorded is refused with what was", async () => {
  const file = newFile();
  await visit(createShop(), "2026-07-28", { record: file });
  await using app = await connectForTest(openCassette(file), { answers: { elicit: declined() } });
  await expect(app.callTool("add", { a: 1, b: 3 })).rejects.toThrow(
    'the cassette has no call of add with these arguments; recorded are {"a":1,"b":2}',
  );
  await expect(app.callTool("buy", { what: "pen" })).rejects.toThrow(
    'its questions were answered otherwise in the cassette: {"sure":{"action":"accept","content":{}}}',
  );
  await expect(app.callTool("nothing")).rejects.toThrow("nothing");
});

test("secrets are not in the file, by their form and by the names of their members", async () => {
  const registry = createRegistry();
  registry.register("sign_in", { input: z.object({ password: z.string() }) }, ({ password }) =>
    JSON.stringify({ api_key: "hunter2hunter2", said: password.length, github: `ghp_${"a1B2".repeat(9)}` }),
  );
  const file = newFile();
  await using app = await connectForTest(registry, { record: file });
  const result = await app.callTool("sign_in", { password: "correct horse" });
  const written = readFileSync(file, "utf8");
  expect(written).not.toMatch(/correct horse|hunter2|ghp_/);
  expect(written).toContain('"password":"[redacted]"');
  expect(result.content[0]).toMatchObject({ text: expect.stringContaining("hunter2") as string });
  await using replayed = await connectForTest(openCassette(file));
  const { content } = await replayed.callTool("sign_in", { password: "correct horse" });
  expect(content[0]).toMatchObject({ text: expect.stringContaining("[redacted]") as string });
});

test.each([
  ["", "line 1: is not the beginning of a cassette"],
  ["{}", "line 1: is not the beginning of a cassette"],
  ['{"cassette":2,"name":"a","version":"1"}', "line 1: is of version 2; this Junctor knows 1"],
  ['{"cassette":1,"name":"a","version":"1"}\nnonsense', "line 2: is not JSON"],
  ['{"cassette":1,"name":"a","version":"1"}\n{"tool":{}}', 'line 2: has neither a "call" nor one of "tools"'],
  [
    '{"cassette":1,"name":"a","version":"1"}\n\n{"tools":{"title":"x"}}',
    'line 3: "tools" needs an object with a "name"',
  ],
  [
    '{"cassette":1,"name":"a","version":"1"}\n{"call":"tools/call","name":"a"}',
    'line 2: a call needs a "call", a "name" and "arguments"',
  ],
  [
    '{"cassette":1,"name":"a","version":"1"}\n{"call":"tools/call","name":"a","arguments":{}}',
    'line 2: a call needs a "result"',
  ],
])("%j is refused with its line", (text, message) => {
  const file = newFile();
  writeFileSync(file, text);
  expect(() => openCassette(file)).toThrow(`${file} ${message}`);
});

test("a recording replaces no file that is not one", async () => {
  const file = join(folder, "package.json");
  writeFileSync(file, '{"name":"mine"}');
  await expect(connectForTest(createShop(), { record: file })).rejects.toThrow(
    "is there and is not a cassette",
  );
  expect(readFileSync(file, "utf8")).toBe('{"name":"mine"}');
});

describe("on the command line", () => {
  const everything = [
    process.execPath,
    join(import.meta.dirname, "../../node_modules/@modelcontextprotocol/server-everything/dist/index.js"),
    "stdio",
  ];
  const file = join(folder, "everything.jsonl");

  test("a legacy server with questions is recorded, and answers clients of both eras without it", async () => {
    const visitEverything = async (
      words: readonly string[],
      revision: "2025-11-25" | "2026-07-28",
    ): Promise<unknown> => {
      await using client = await connect(
        { command: process.execPath, args: [bin, ...words] },
        { revision, handlers: { elicit: () => accepted({ name: "Ada", check: true }) as never } },
      );
      const results = [
        await client.callTool("echo", { message: "hello" }),
        await client.callTool("get-sum", { a: 2, b: 40 }),
        await client.callTool("get-tiny-image"),
        await client.callTool("trigger-elicitation-request"),
      ];
      const names = (await client.listTools()).map(({ name }) => name);
      return [names.toSorted(), ...results.map(({ content }) => content)];
    };
    const live = await visitEverything(["record", file, "--", ...everything], "2025-11-25");
    expect(await visitEverything(["replay", file], "2025-11-25")).toEqual(live);
    expect(await visitEverything(["replay", file], "2026-07-28")).toEqual(live);
  });

  test("the same server does not differ from its recording", async () => {
    expect(await junctor(["diff", file, "--", ...everything])).toMatchObject({
      code: 0,
      stdout: "",
      stderr: expect.stringContaining("nothing differs; 4 calls were made again") as string,
    });
  });

  test("each change of a definition or a result is found, and exits with 1", async () => {
    const changes: readonly (readonly [from: string, to: string])[] = [
      ['"Echoes back the input string"', '"Echoes"'],
      ['"The sum of 2 and 40 is 42."', '"42"'],
      ['{"tools":{"name":"echo"', '{"tools":{"name":"echo2"'],
      ['"message":"hello"', '"message":"hullo"'],
    ];
    const recording = readFileSync(file, "utf8");
    for (const [from, to] of changes) {
      expect(recording).toContain(from);
      const seeded = newFile();
      writeFileSync(seeded, recording.replace(from, to));
      const { code, stdout } = await junctor(["diff", seeded, "--", ...everything]);
      expect([from, code, stdout]).toEqual([from, 1, expect.stringMatching(/^[~+-] \w/)]);
    }
  });

  test("a recording is served over HTTP", async () => {
    const child = spawn(process.execPath, [bin, "replay", file, "--port", "0"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const exited = once(child, "exit");
    try {
      const [url] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
      await using client = await connect(url.trim());
      expect(textOf(await client.callTool("get-sum", { a: 2, b: 40 }))).toBe("The sum of 2 and 40 is 42.");
    } finally {
      child.kill("SIGTERM");
    }
    expect(await exited).toEqual([0, null]);
  });

  test("a wrong file is one message", async () => {
    const broken = newFile();
    writeFileSync(broken, "hello\n");
    const { code, stdout, stderr } = await junctor(["replay", broken]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^junctor: \S+ line 1: is not JSON: [^\n]+\n/);
  });
});
