import { mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ConfigError } from "../../packages/core/src/errors/index.ts";
import { loadMiddleware } from "../../packages/junctor/src/gateway/chain.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "junctor-middleware-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function load(name: string, text: string): Promise<unknown> {
  const path = join(folder, name);
  await writeFile(path, text);
  return loadMiddleware(path, "mcp.json");
}

/** What is wrong with a module. */
async function complaintOf(name: string, text: string): Promise<string> {
  const error: unknown = await load(name, text).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ConfigError);
  const { file, issues } = error as ConfigError;
  expect(file).toBe("mcp.json");
  expect(issues).toHaveLength(1);
  expect(issues[0]?.path).toBe("junctor.middleware");
  return issues[0]?.message ?? "";
}

describe("a module may export", () => {
  test("a middleware", async () => {
    const made = await load("object.mjs", "export default { beforeCall() {}, afterCall() {} };");
    expect(made).toMatchObject({
      beforeCall: expect.any(Function) as unknown,
      afterCall: expect.any(Function) as unknown,
    });
  });

  test("a function that makes one, at once or later", async () => {
    const made = [
      await load("function.mjs", "export default () => ({ filterTools: (tools) => tools });"),
      await load("async.mjs", "export default async () => ({ filterTools: (tools) => tools });"),
    ];
    for (const each of made) expect(each).toMatchObject({ filterTools: expect.any(Function) as unknown });
  });

  test("an object of a class", async () => {
    const text = "class Guard { #n = 1; beforeCall() { return this.#n; } } export default new Guard();";
    const made = (await load("class.mjs", text)) as { beforeCall(): unknown };
    expect(made.beforeCall()).toBe(1);
  });
});

describe("a module is refused that", () => {
  test.each([
    ["no default", "export const beforeCall = () => {};", "has no middleware"],
    ["null", "export default null;", "has no middleware"],
    ["text", "export default 'beforeCall';", "has no middleware"],
    ["a function that makes nothing", "export default () => {};", "has no middleware"],
    [
      "no hook",
      "export default { beforecall() {} };",
      "has none of the hooks filterTools, beforeCall, afterCall",
    ],
    ["a hook that is left out", "export default { beforeCall: undefined };", "has none of the hooks"],
    [
      "a hook that is not a function",
      "export default { beforeCall: true };",
      "beforeCall must be a function",
    ],
    [
      "a wrong hook among right ones",
      "export default { beforeCall() {}, afterCall: {} };",
      "afterCall must be a function",
    ],
    ["a mistake in its text", "export default {", "cannot be loaded"],
    ["a failure while it loads", "throw new Error('no database');", "cannot be loaded: no database"],
    ["a failure of its function", "export default () => { throw new Error('no licence'); };", "no licence"],
    ["a missing import", "import './absent.mjs'; export default {};", "cannot be loaded"],
  ])("has %s", async (what, text, complaint) => {
    expect(await complaintOf(`${what.replaceAll(" ", "-")}.mjs`, text)).toContain(complaint);
  });

  test("is not there", async () => {
    const missing = loadMiddleware(join(folder, "absent.mjs"), "mcp.json");
    await expect(missing).rejects.toThrow(ConfigError);
    await expect(loadMiddleware(join(folder, "absent.mjs"), "mcp.json")).rejects.toThrow("cannot be loaded");
  });

  test("is a folder", async () => {
    await expect(loadMiddleware(folder, "mcp.json")).rejects.toThrow(ConfigError);
  });
});

test("a module that changed is loaded again, and one that did not is the same", async () => {
  const path = join(folder, "changing.mjs");
  const toText = (answer: number): string => `export default { beforeCall: () => ${answer}, made: {} };`;
  const answerOf = async (): Promise<unknown> => {
    const made = (await loadMiddleware(path, "mcp.json")) as unknown as { beforeCall(): number };
    return made.beforeCall();
  };
  await writeFile(path, toText(1));
  expect(await answerOf()).toBe(1);
  expect(await loadMiddleware(path, "mcp.json")).toBe(await loadMiddleware(path, "mcp.json"));
  await writeFile(path, toText(2));
  await utimes(path, new Date(), new Date(Date.now() + 5000));
  expect(await answerOf()).toBe(2);
});
