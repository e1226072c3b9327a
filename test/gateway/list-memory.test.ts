import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import { definitionOf, fromDefinition } from "../../packages/core/src/mcp/definition.ts";
import type { Tool } from "../../packages/core/src/mcp/types.ts";
import type { ServerConfig } from "../../packages/junctor/src/config/config.ts";
import { createHide } from "../../packages/junctor/src/log/log.ts";
import { ListMemory } from "../../packages/junctor/src/servers/list-memory.ts";
import { toListed, toServerConfig } from "../support/fake-source.ts";

const root = mkdtempSync(join(tmpdir(), "junctor-list-memory-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folders = 0;
const newFolder = (): string => join(root, String(folders++));

interface Opened {
  readonly folder: string;
  readonly warnings: string[];
  open(maxFiles?: number): ListMemory;
}

function at(folder: string, secrets: readonly string[] = []): Opened {
  const warnings: string[] = [];
  const log = {
    debug: () => {},
    info: () => {},
    error: () => {},
    warn: (_: object, text: string) => void warnings.push(text),
  };
  const hide = createHide(() => secrets);
  return {
    folder,
    warnings,
    open: (maxFiles = 256) => new ListMemory({ folder, hide, log, maxFiles }),
  };
}

const launch = (env: { readonly [name: string]: string } = {}): Partial<ServerConfig> => ({
  launch: { kind: "command", command: "npx", args: ["-y", "server"], env, cwd: undefined },
});
const files = toServerConfig("files", launch());

const filesIn = (folder: string): readonly string[] =>
  readdirSync(folder).filter((name) => name.endsWith(".lists"));

describe("what was kept", () => {
  test("is recalled by the next process, byte for byte, and is not confirmed", async () => {
    const text = '{ "name":"read", "inputSchema":{"type":"object","maximum":12345678901234567890} }';
    const tool = fromDefinition<Tool>(RawJson.fromText(text));
    const { folder, open } = at(newFolder());
    const first = open();
    expect(first.recall(files)).toBeUndefined();
    const resources = [{ uri: "file:///a", name: "a" }];
    first.keep(files, toListed({ tools: [tool], resources }));
    await first.flush();
    const recalled = at(folder).open().recall(files);
    expect(recalled).toMatchObject({
      resources,
      prompts: [],
      templates: [],
      isConfirmed: false,
      problems: [],
    });
    expect(definitionOf(recalled?.tools[0] ?? {}).text).toBe(text);
  });

  test("that a server was missed is known to the next process, until it lists", async () => {
    const { folder, open } = at(newFolder());
    const first = open();
    expect(first.wasMissed(files)).toBe(false);
    first.miss(files);
    await first.flush();
    const second = at(folder).open();
    expect(second.wasMissed(files)).toBe(true);
    expect(second.recall(files)).toBeUndefined();
    second.miss(files);
    second.keep(files, toListed({ tools: [] }));
    await second.flush();
    expect(at(folder).open().wasMissed(files)).toBe(false);
    // A gateway that has not seen it list does not know better than one that has.
    first.miss(files);
    await first.flush();
    const third = at(folder).open();
    third.miss(files);
    await third.flush();
    expect(at(folder).open().recall(files)).toMatchObject({ tools: [] });
  });

  test("can be read by its owner only, and holds no secret of the config", async () => {
    const { folder, open } = at(newFolder(), ["s3cret-token"]);
    const server = toServerConfig("files", launch({ TOKEN: "s3cret-token" }));
    const memory = open();
    const description = "signs in with s3cret-token";
    memory.keep(
      server,
      toListed({ tools: [{ name: "read", description, inputSchema: { type: "object" } }] }),
    );
    await memory.flush();
    const [name = ""] = filesIn(folder);
    const text = readFileSync(join(folder, name), "utf8");
    expect(text).not.toContain("s3cret");
    expect(JSON.parse(text.slice(text.indexOf("\n")))).toMatchObject({
      tools: [{ description: "signs in with [secret]" }],
    });
    expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, "salt")).mode & 0o777).toBe(0o600);
  });

  test("is that of a launch: another argument, variable or folder is another server", async () => {
    const { open } = at(newFolder());
    const memory = open();
    memory.keep(files, toListed({ prompts: [{ name: "p" }] }));
    await memory.flush();
    expect(memory.recall(toServerConfig("renamed", launch()))).toBeDefined();
    expect(memory.recall(toServerConfig("files", launch({ TOKEN: "other" })))).toBeUndefined();
  });

  test("is that of a folder: the same words may be another program elsewhere", async () => {
    const { open } = at(newFolder());
    const memory = open();
    memory.keep(files, toListed({ prompts: [{ name: "p" }] }));
    await memory.flush();
    const before = process.cwd();
    try {
      process.chdir(root);
      expect(memory.recall(files)).toBeUndefined();
    } finally {
      process.chdir(before);
    }
    expect(memory.recall(files)).toBeDefined();
  });

  test("lacks items that are not the same without a secret", async () => {
    const { open } = at(newFolder(), ["s3cret-token"]);
    const memory = open();
    const resources = [
      { uri: "https://x/?key=s3cret-token", name: "a" },
      { uri: "https://x/", name: "b" },
    ];
    memory.keep(files, toListed({ resources }));
    await memory.flush();
    expect(memory.recall(files)?.resources).toEqual([{ uri: "https://x/", name: "b" }]);
  });

  test("is not replaced by what was not confirmed", async () => {
    const { open } = at(newFolder());
    const memory = open();
    memory.keep(files, toListed({ areToolsConfirmed: false }));
    await memory.flush();
    expect(memory.recall(files)).toBeUndefined();
  });
});

describe("a file that is not as it was written", () => {
  test.each([
    ["is cut short", (text: string) => text.slice(0, -10)],
    ["was edited", (text: string) => text.replace('"p"', '"q"')],
    ["is something else", () => '{"version":1,"tools":[{"name":"a"}]}'],
    ["is empty", () => ""],
  ])("is as good as none when it %s", async (_, change) => {
    const { folder, open, warnings } = at(newFolder());
    const memory = open();
    memory.keep(files, toListed({ prompts: [{ name: "p" }] }));
    await memory.flush();
    const path = join(folder, filesIn(folder)[0] ?? "");
    writeFileSync(path, change(readFileSync(path, "utf8")));
    expect(open().recall(files)).toBeUndefined();
    expect(warnings).toEqual([]);
  });

  test("is ignored when others may write it", async () => {
    const { folder, open } = at(newFolder());
    const memory = open();
    memory.keep(files, toListed());
    await memory.flush();
    chmodSync(join(folder, filesIn(folder)[0] ?? ""), 0o666);
    expect(open().recall(files)).toBeUndefined();
  });
});

test("there are no more files than allowed: the oldest are removed", async () => {
  const { folder, open } = at(newFolder());
  const memory = open(2);
  for (const name of ["a", "b"]) {
    memory.keep(toServerConfig(name, launch({ NAME: name })), toListed());
    await memory.flush();
    for (const file of filesIn(folder)) utimesSync(join(folder, file), 1000, name === "a" ? 1000 : 2000);
  }
  const oldest = toServerConfig("c", launch({ NAME: "c" }));
  memory.keep(oldest, toListed());
  await memory.flush();
  expect(filesIn(folder)).toHaveLength(2);
  expect(memory.recall(oldest)).toBeDefined();
});

test("what a killed process left half written is removed after a while", async () => {
  const { folder, open } = at(newFolder());
  const memory = open();
  memory.keep(files, toListed());
  await memory.flush();
  const leftOver = join(folder, "x.lists.abc.tmp");
  writeFileSync(leftOver, "half");
  utimesSync(leftOver, 1000, 1000);
  memory.keep(toServerConfig("other", launch({ A: "1" })), toListed());
  await memory.flush();
  expect(readdirSync(folder)).not.toContain("x.lists.abc.tmp");
});

test("a folder that cannot be written is reported once, and nothing else fails", async () => {
  const file = join(root, "a-file");
  writeFileSync(file, "");
  const { open, warnings } = at(join(file, "lists"));
  const memory = open();
  expect(memory.recall(files)).toBeUndefined();
  memory.keep(files, toListed());
  await memory.flush();
  expect(warnings).toEqual(["lists of servers cannot be remembered in this folder"]);
});
