import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createDaemonHome, notedServers, openFront } from "./support/daemon-home.ts";
import { junctor, type Run } from "./support/junctor-bin.ts";

let home = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "jc-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const run = (...args: readonly string[]): Promise<Run> =>
  junctor(args, { env: { HOME: home, XDG_RUNTIME_DIR: "" }, cwd: home });
const config = (): { mcpServers: { [name: string]: object } } =>
  JSON.parse(readFileSync(join(home, ".junctor", "junctor.json"), "utf8")) as {
    mcpServers: object & { [name: string]: object };
  };

describe.runIf(process.platform === "linux")("a new user", () => {
  test("installs into two clients with ten servers each, and both entries work with ten processes in all", async () => {
    await using daemon = createDaemonHome({ mcpServers: {} });
    const names = Array.from({ length: 10 }, (_, index) => `s${index}`);
    const servers = Object.fromEntries(
      names.map((name) => [name, Object.values(notedServers([name], { env: { NAME: name } }))[0]]),
    );
    const files = [
      join(daemon.folder, ".cursor", "mcp.json"),
      join(daemon.folder, ".config", "Claude", "claude_desktop_config.json"),
    ];
    for (const file of files) {
      mkdirSync(join(file, ".."), { recursive: true });
      writeFileSync(file, JSON.stringify({ mcpServers: servers }, null, 2));
    }
    const before = files.map((file) => readFileSync(file, "utf8"));
    const installed = await daemon.junctor("install", "--all", "--yes");
    expect(installed.stdout).toBe(
      "Claude Desktop: installed, 10 servers taken over; restart it\nCursor: installed, 10 servers taken over; restart it\n",
    );
    const pids = new Set<string>();
    for (const file of files) {
      const { mcpServers } = JSON.parse(readFileSync(file, "utf8")) as {
        mcpServers: { junctor: { command: string; args: string[] } };
      };
      expect(Object.keys(mcpServers)).toEqual(["junctor"]);
      const { command, args } = mcpServers.junctor;
      const front = openFront(
        spawn(command, args, { cwd: daemon.folder, env: { ...process.env, ...daemon.env } }),
      );
      await front.shake();
      for (const name of names) pids.add(await front.call(`${name}__pid`));
      await front.leave();
    }
    expect(pids.size).toBe(10);
    expect((await daemon.junctor("uninstall", "--all", "--yes")).code).toBe(0);
    expect(files.map((file) => readFileSync(file, "utf8"))).toEqual(before);
  });
});

test("nothing is written without a word of the person, nor with --dry-run", async () => {
  mkdirSync(join(home, ".cursor"));
  const file = join(home, ".cursor", "mcp.json");
  writeFileSync(file, '{"mcpServers":{"a":{"command":"x","env":{"KEY":"sk-not-shown"}}}}');
  const before = readFileSync(file, "utf8");
  expect(await run("install", "cursor")).toMatchObject({ code: 2 });
  const dry = await run("install", "cursor", "--dry-run");
  expect(dry.code).toBe(0);
  expect(dry.stdout).toContain('takes over "a"\n');
  expect(dry.stderr + dry.stdout).not.toContain("sk-not-shown");
  expect(readFileSync(file, "utf8")).toBe(before);
  expect(() => statSync(join(home, ".junctor"))).toThrow("ENOENT");
});

test("a difference shows no secret of any server, in any format, whatever its quotes", async () => {
  mkdirSync(join(home, ".junctor"));
  writeFileSync(
    join(home, ".junctor", "junctor.json"),
    '{"mcpServers":{"x":{"command":"x","env":{"K":"sk-not-shown-1"}}}}',
  );
  mkdirSync(join(home, ".cursor"));
  writeFileSync(
    join(home, ".cursor", "mcp.json"),
    '{"mcpServers":{"o":{"url":"https://e.com","headers":{"X":"sk-not-shown-2"},"auth":{"S":"sk-not-shown-3"}}}}',
  );
  mkdirSync(join(home, ".codex"));
  writeFileSync(
    join(home, ".codex", "config.toml"),
    "# the \"old one\n[mcp_servers.'q\"t']\ncommand = \"x\"\nenv = { K = 'sk-not-shown-4' }\n",
  );
  mkdirSync(join(home, ".config", "goose"), { recursive: true });
  writeFileSync(
    join(home, ".config", "goose", "config.yaml"),
    "extensions:\n  a:\n    type: stdio\n    cmd: a\n    envs:\n      K: sk-not-shown-5\n",
  );
  const dry = await run("install", "--all", "--dry-run");
  expect(dry.code).toBe(0);
  const written = await run("install", "--all", "--yes");
  expect(written.stderr).toContain("K: [secret]");
  for (const { stdout, stderr } of [dry, written]) expect(stderr + stdout).not.toContain("sk-not-shown");
});

test("--dry-run shows each client once and our config as all of them leave it, and names what is lost", async () => {
  const write = (path: string, text: string): void => {
    mkdirSync(join(home, path, ".."), { recursive: true });
    writeFileSync(join(home, path), text);
  };
  const browser = { command: "npx", args: ["@playwright/mcp"], disabled: true };
  write(
    ".cursor/mcp.json",
    JSON.stringify({ mcpServers: { files: { command: "npx", args: ["files"] }, browser } }),
  );
  write(
    ".codex/config.toml",
    '[mcp_servers.files]\ncommand = "npx"\nargs = ["files"]\nstartup_timeout_sec = 40\nenv_vars = []\n',
  );
  const gemini = {
    files: { command: "npx", args: ["others"], trust: true, timeout: 9000 },
    few: { command: "npx", includeTools: ["one"] },
  };
  write(".gemini/settings.json", JSON.stringify({ mcpServers: gemini }));
  const dry = await run("install", "--all", "--dry-run");
  expect(dry).toMatchObject({ code: 0, stderr: "Nothing was written.\n" });
  expect(dry.stdout).toBe(
    [
      `Cursor: ${home}/.cursor/mcp.json`,
      '  takes over "files"',
      '  takes over "browser"',
      '  writes the entry "junctor"',
      `Codex: ${home}/.codex/config.toml`,
      '  takes over "files" (known)',
      '  settings of "files" that are not carried over: startup_timeout_sec',
      '  writes the entry "junctor"',
      `Gemini CLI: ${home}/.gemini/settings.json`,
      '  takes over "files" (as "files-gemini")',
      '  settings of "files" that are not carried over: trust, timeout',
      '  leaves "few" with the client: the client limits its tools (includeTools)',
      '  writes the entry "junctor"',
      `${home}/.junctor/junctor.json would have:`,
      "  +  files-gemini  npx others",
      "  +  files         npx files",
      "  +  browser       npx @playwright/mcp  off, a process for each session",
      "",
    ].join("\n"),
  );
  const written = await run("install", "--all", "--yes");
  expect(written.stderr).toContain("files: not carried over: trust, timeout");
  expect(Object.keys(config().mcpServers)).toEqual(["files-gemini", "files", "browser"]);
});

describe("Claude Code", () => {
  const files = { type: "stdio", command: "npx", args: ["files"] };
  const more = { type: "stdio", command: "npx", args: ["more"] };
  const servers = (): object =>
    (JSON.parse(readFileSync(join(home, ".claude.json"), "utf8")) as { mcpServers: object }).mcpServers;
  const asked = (): readonly string[] => readFileSync(join(home, "asked"), "utf8").trimEnd().split("\n");
  const own = (): object => ({
    type: "stdio",
    command: join(home, ".junctor", "bin", "junctor"),
    args: ["attach", "--client", "claude-code"],
  });
  /** With a program that edits the file as Claude Code's does, and refuses to remove `stuck`. */
  const runWith = (...words: readonly string[]): Promise<Run> => {
    const bin = join(home, "bin");
    mkdirSync(bin, { recursive: true });
    const script = `#!${process.execPath}
const fs = process.getBuiltinModule("node:fs"); // As CommonJS and as a module, whatever package.json is above.
const [, act, , , name, text] = process.argv.slice(2);
fs.appendFileSync(process.env.HOME + "/asked", process.argv.slice(2).join(" ") + "\\n");
const file = process.env.HOME + "/.claude.json";
const value = JSON.parse(fs.readFileSync(file, "utf8"));
if (act === "add-json" ? name in value.mcpServers : !(name in value.mcpServers) || name === process.env.STUCK) process.exit(1);
if (act === "add-json") value.mcpServers[name] = JSON.parse(text);
else delete value.mcpServers[name];
fs.writeFileSync(file, JSON.stringify(value));
`;
    writeFileSync(join(bin, "claude"), script);
    chmodSync(join(bin, "claude"), 0o755);
    const env = { HOME: home, XDG_RUNTIME_DIR: "", PATH: `${bin}:${process.env["PATH"] ?? ""}` };
    const [stuck, rest] = words[0] === "stuck" ? [words[1] ?? "", words.slice(2)] : ["", words];
    return junctor(rest, { env: { ...env, STUCK: stuck }, cwd: home });
  };

  test("is edited by its own program only", async () => {
    writeFileSync(join(home, ".claude.json"), JSON.stringify({ mcpServers: { files } }));
    expect(await run("install", "claude-code", "--yes")).toMatchObject({ code: 1 });
    expect(await run("uninstall", "claude-code", "--yes")).toMatchObject({ code: 2 });
    expect(await runWith("install", "claude", "--yes")).toMatchObject({ code: 0 });
    expect(await runWith("uninstall", "claude", "--yes")).toMatchObject({ code: 0 });
    expect(asked()).toEqual([
      `mcp add-json -s user junctor ${JSON.stringify(own())}`,
      "mcp remove -s user files",
      "mcp remove -s user junctor",
      `mcp add-json -s user files ${JSON.stringify(files)}`,
    ]);
  });

  test("is left by a second installation as by the first: our entry goes, and all servers come back", async () => {
    writeFileSync(join(home, ".claude.json"), JSON.stringify({ mcpServers: { files } }));
    await runWith("install", "claude", "--yes");
    writeFileSync(join(home, ".claude.json"), JSON.stringify({ mcpServers: { ...servers(), more } }));
    await runWith("install", "claude", "--yes");
    expect(servers()).toEqual({ junctor: own() });
    expect(await runWith("uninstall", "claude", "--yes")).toMatchObject({ code: 0 });
    expect(servers()).toEqual({ files, more });
  });

  test("gets its servers back also after an installation that failed on the way", async () => {
    writeFileSync(join(home, ".claude.json"), JSON.stringify({ mcpServers: { files, more } }));
    expect(await runWith("stuck", "more", "install", "claude", "--yes")).toMatchObject({ code: 1 });
    expect(servers()).toEqual({ more, junctor: own() });
    expect(await runWith("uninstall", "claude", "--yes")).toMatchObject({ code: 0 });
    expect(servers()).toEqual({ files, more });
  });
});

describe("servers of our config", () => {
  const [command = "", ...args] = Object.values(
    notedServers(["a"]) as { a: { command: string; args: string[] } },
  ).flatMap(({ command: each, args: rest }) => [each, ...rest]);

  test("are added, switched off and on, and removed, and the rest of the file stays", async () => {
    mkdirSync(join(home, ".junctor"));
    const file = join(home, ".junctor", "junctor.json");
    const text = '{\n  // mine\n  "mcpServers": {\n    "x": { "command": "y" } // last\n  }\n}\n';
    writeFileSync(file, text);
    const added = await run("add", "a", "--env", "K=v", "--", command, ...args);
    expect(added).toMatchObject({ code: 0, stderr: "a works: 6 tools\n" });
    expect(readFileSync(file, "utf8")).toContain('    "x": { "command": "y" } // last\n');
    await run("disable", "a");
    expect(readFileSync(file, "utf8")).toContain('"disabled": true');
    expect(await run("enable", "a")).toMatchObject({ code: 0 });
    expect(await run("add", "a", "https://example.com/mcp", "--no-check")).toMatchObject({ code: 2 });
    await run("remove", "a");
    expect(readFileSync(file, "utf8")).toBe(text);
  });

  test("that do not start are not added, unless told so", async () => {
    const failed = await run("add", "a", "--", "/nonexistent/server");
    expect(failed).toMatchObject({ code: 3 });
    expect(failed.stderr).toContain("nothing was written");
    expect(() => statSync(join(home, ".junctor", "junctor.json"))).toThrow("ENOENT");
    expect(await run("add", "a", "--no-check", "--", "/nonexistent/server")).toMatchObject({ code: 0 });
    expect(config().mcpServers).toEqual({ a: { command: "/nonexistent/server", args: [] } });
  });

  test("have their secrets in files of their own when asked", async () => {
    await run("add", "a", "--secrets", "--env", "KEY=sk-secret", "--no-check", "--", "x");
    const file = join(home, ".junctor", "env", "a.env");
    expect(config().mcpServers).toEqual({ a: { command: "x", args: [], envFile: file } });
    expect(readFileSync(file, "utf8")).toBe('KEY="sk-secret"\n');
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test("have secrets of their own, however alike their names are", async () => {
    const servers = {
      "a b": { command: "x", env: { K: "first" } },
      a_b: { command: "y", env: { K: "second" } },
      "a:b": { command: "z", env: { K: "third" } },
    };
    writeFileSync(join(home, "some.json"), JSON.stringify({ mcpServers: servers }));
    await run("import", "./some.json", "--secrets", "--yes");
    const texts = Object.values(config().mcpServers).map((entry) =>
      readFileSync((entry as { envFile: string }).envFile, "utf8"),
    );
    expect(Object.keys(config().mcpServers)).toEqual(["a b", "a_b", "a:b-file"]);
    expect(texts).toEqual(['K="first"\n', 'K="second"\n', 'K="third"\n']);
  });

  test("that are added from a folder say what that means elsewhere", async () => {
    const added = await run("add", "toString", "--no-check", "--cwd", "sub", "--", command, "./s.mjs");
    expect(added).toMatchObject({ code: 0, stderr: "" });
    expect(config().mcpServers["toString"]).toMatchObject({ cwd: join(home, "sub") });
    expect((await run("add", "b", "--no-check", "--", command, "./s.mjs")).stderr).toBe(
      "junctor: warning: ./s.mjs is another file in each project; write the whole path, or --cwd FOLDER\n",
    );
  });

  test("are known by their own names when they are imported", async () => {
    expect(await run("import", "./none.json")).toMatchObject({
      code: 2,
      stderr: `junctor: ${join(home, "none.json")} does not exist; name another file, or a client that junctor clients lists\n`,
    });
    await run("add", "x", "--no-check", "--", "npx", "files");
    writeFileSync(
      join(home, "some.json"),
      JSON.stringify({
        mcpServers: { files: { command: "y" }, us: { command: "junctor", args: ["attach"] } },
      }),
    );
    expect(await run("import", "./some.json", "--yes")).toMatchObject({
      stdout: `1 added to ${join(home, ".junctor", "junctor.json")}\n`,
      stderr: "  files: y\n",
    });
  });

  test("are imported from a file, each once", async () => {
    const file = join(home, "servers.toml");
    writeFileSync(file, '[mcp_servers.a]\ncommand = "x"\n');
    expect(await run("import", "./servers.toml", "--yes")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("1 added") as string,
    });
    expect(await run("import", "./servers.toml", "--yes")).toMatchObject({
      code: 0,
      stdout: "nothing is new\n",
    });
    writeFileSync(file, '[mcp_servers.a]\ncommand = "y"\n');
    await run("import", "./servers.toml", "--yes");
    expect(config().mcpServers).toEqual({
      a: { command: "x", args: [] },
      "a-file": { command: "y", args: [] },
    });
  });
});

test("the shell completes commands, servers, clients, flags, tools and arguments", async () => {
  const [command, ...args] = Object.values(
    notedServers(["a"]) as { a: { command: string; args: string[] } },
  ).flatMap(({ command: each, args: rest }) => [each, ...rest]);
  mkdirSync(join(home, ".junctor"));
  const file = join(home, ".junctor", "junctor.json");
  writeFileSync(file, JSON.stringify({ mcpServers: { notes: { command, args } } }), { mode: 0o600 });
  const completed = async (...words: readonly string[]): Promise<readonly string[]> =>
    (await run("complete", "--", ...words)).stdout.split("\n").filter(Boolean);
  expect(await completed("ins")).toEqual(["install"]);
  expect(await completed("install", "cu")).toEqual(["cursor"]);
  expect(await completed("disable", "")).toEqual(["notes"]);
  expect(await completed("serve", "--st")).toEqual(["--stdio"]);
  expect(await completed("call", "")).toEqual([]);
  expect(await completed("nonsense", "")).toEqual([]);
  for (const shell of ["bash", "zsh", "fish"])
    expect((await run("completion", shell)).stdout).toContain("junctor complete --");
});
