import { spawnSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ConfigError } from "../../packages/core/src/errors/index.ts";
import {
  parseConfigFile,
  readConfig,
  readConfigText,
} from "../../packages/junctor/src/config/config-file.ts";

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "junctor-config-"));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
}

async function write(content: string | Uint8Array, name = "mcp.json"): Promise<string> {
  const file = join(await folder(), name);
  await writeFile(file, content);
  return file;
}

test("a file is read, and paths in it are resolved against its folder", async () => {
  const here = await folder();
  await writeFile(join(here, "server.env"), "TOKEN='from the file'\nPORT=1\n");
  await writeFile(
    join(here, "mcp.json"),
    `\uFEFF{
      // ours
      "mcpServers": {
        "x": { "command": "\${workspaceFolder}/run", "cwd": "work", "envFile": "server.env", "env": { "PORT": "2" } },
      },
      "junctor": { "audit": "audit.jsonl", "middleware": ["./mine.mjs"] },
    }`,
  );
  const config = await readConfig(join(here, "mcp.json"), {});
  expect(config.servers[0]?.launch).toEqual({
    envFile: join(here, "server.env"),
    kind: "command",
    command: `${here}/run`,
    args: [],
    env: { TOKEN: "from the file", PORT: "2" },
    cwd: join(here, "work"),
  });
  expect(config.audit).toEqual({ file: join(here, "audit.jsonl") });
  expect(config.middleware).toEqual([join(here, "mine.mjs")]);
  expect(config.secrets).toEqual(["from the file"]);
});

test("a file that cannot be read is an error that says what to do", async () => {
  const here = await folder();
  await mkdir(join(here, "sub"));
  const messageOf = async (file: string): Promise<string> => {
    const error = await readConfig(file, {}).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(error).toBeInstanceOf(ConfigError);
    expect(error).toMatchObject({
      code: "config.invalid",
      file,
      issues: [{ path: "" }],
    });
    expect((error as ConfigError).cause).toBeInstanceOf(Error);
    return (error as ConfigError).message.replace(file, "FILE");
  };
  expect(await messageOf(join(here, "none.json"))).toBe(
    "FILE: does not exist: create it, or name another file",
  );
  expect(await messageOf(join(here, "sub"))).toBe("FILE: is a folder: name the file in it");
  expect(await messageOf(await write(Buffer.from("\uFEFF{}", "utf16le")))).toBe(
    "FILE: is not UTF-8: save it in that encoding",
  );
  expect(await messageOf(await write(" ".repeat(1024 * 1024 + 1)))).toBe(
    "FILE: is larger than 1 MiB: is it a config?",
  );
  expect(await messageOf(join(await write(""), "below"))).toBe(
    "FILE: cannot be read (ENOTDIR): name another file",
  );
});

// Root may read everything.
test.skipIf(process.getuid?.() === 0)("a file of another user is an error too", async () => {
  const file = await write("{}");
  await chmod(file, 0);
  await expect(readConfig(file, {})).rejects.toThrow(
    "may not be read by this user: chmod u+r makes its owner a reader, or name another file",
  );
});

test.runIf(process.platform === "linux")("files without an end, and pipes, keep nobody waiting", async () => {
  const here = await folder();
  const pipe = join(here, "pipe");
  spawnSync("mkfifo", [pipe]);
  for (const [envFile, why] of [
    ["/dev/zero", "no file"],
    [pipe, "no file"],
    ["/proc/self/pagemap", "it is too large"],
  ] as const) {
    const text = JSON.stringify({ mcpServers: { x: { command: "a", envFile } } });
    expect(() => parseConfigFile(join(here, "mcp.json"), text, {})).toThrow(`cannot be read (${why})`);
  }
  expect(() => readConfigText(pipe)).toThrow("is not a file any more");
  expect(() => readConfigText("/dev/zero", true)).toThrow("is larger than 1 MiB");
});

test("more than 1,000 servers are refused", () => {
  const servers = Array.from({ length: 1001 }, (_, number) => [`s${number}`, { command: "a" }]);
  const text = JSON.stringify({ mcpServers: Object.fromEntries(servers) as object });
  expect(() => parseConfigFile("mcp.json", text, {})).toThrow("has 1001 servers: 1000 may be there");
});
