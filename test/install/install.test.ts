import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { toOurEntry } from "../../packages/junctor/src/install/client-entry.ts";
import { readSection } from "../../packages/junctor/src/install/client-file.ts";
import { type ClientPlace, type ClientProgram, clients } from "../../packages/junctor/src/install/clients.ts";
import {
  applyInstall,
  applyUninstall,
  planInstall,
  planUninstall,
} from "../../packages/junctor/src/install/install.ts";
import { readLedger } from "../../packages/junctor/src/install/ledger.ts";

let home = "";
let place: ClientPlace;
const launcher = { command: "/home/ada/.junctor/bin/junctor", args: [] };

beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "ji-")));
  vi.stubEnv("HOME", home);
  place = { home, platform: "linux", env: {} };
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

const configFile = (): string => join(home, ".junctor", "junctor.json");

function clientCalled(id: string): ClientProgram {
  const found = clients.find((each) => each.id === id);
  if (found === undefined) throw new Error(id);
  return found;
}

/** Files as people have them: comments, odd spacing, settings of other kinds beside the servers. */
const files: { readonly [id: string]: string } = {
  "claude-code":
    '{"numStartups":12,"mcpServers":{"files":{"type":"stdio","command":"npx","args":["-y","files"],"env":{}}},"projects":{}}',
  "claude-desktop":
    '{\n    "globalShortcut": "",\n    "mcpServers": {\n        "files": {\n            "command": "npx",\n            "args": ["-y", "files"]\n        },\n        "literal": { "command": "x", "env": { "A": "${NOT}" } }\n    }\n}\n',
  cursor:
    '{\r\n  "mcpServers" : {\r\n    "files": { "command": "npx", "args": ["-y", "files"] },\r\n    "web": { "url": "https://example.com/mcp", "headers": { "Authorization": "Bearer ${env:WEB}" } }\r\n  }\r\n}',
  vscode:
    '{\n\t// Servers\n\t"inputs": [{ "id": "key", "type": "promptString" }],\n\t"servers": {\n\t\t"asks": { "type": "stdio", "command": "a", "env": { "K": "${input:key}" } }, // stays\n\t\t"files": { "type": "stdio", "command": "npx", "args": ["-y", "files"], },\n\t},\n}\n',
  copilot:
    '{ "mcpServers": { "files": { "type": "local", "command": "npx", "args": ["-y", "files"], "tools": ["*"] } } }\n',
  codex:
    '# My settings\nmodel = "o9"\n\n[mcp_servers.files] # files\ncommand = "npx"\nargs = ["-y", "files"]\n\n[mcp_servers.files.env]\nA = "1"\n\n# A URL\n[mcp_servers.web]\nurl = "https://example.com/mcp"\nbearer_token_env_var = "WEB"\n\n# Others\n[tools]\nweb_search = true\n',
  gemini:
    '{\n  "theme": "dark",\n  "mcpServers": {\n    "files": { "command": "npx", "args": ["-y", "files"], "env": { "A": "$HOME/x" }, "trust": true },\n    "web": { "httpUrl": "https://example.com/mcp" }\n  }\n}\n',
  windsurf:
    '{\n  "mcpServers": {\n    "files": { "command": "npx", "args": ["-y", "files"] },\n    "web": { "serverUrl": "https://example.com/mcp" }\n  }\n}\n',
  zed: '// Zed settings\n{\n  "vim_mode": true, // yes\n  "context_servers": {\n    "files": { "command": "npx", "args": ["-y", "files"], "env": {} },\n  },\n  /* more */\n  "theme": "One",\n}\n',
  goose:
    "# Goose\nGOOSE_PROVIDER: x\nextensions:\n  developer: # built in\n    type: builtin\n    enabled: true\n  files:\n    type: stdio\n    cmd: npx\n    args:\n      - -y\n      - files\n    envs: {}\n    enabled: true\nGOOSE_MODE: auto\n",
  cline:
    '{ "mcpServers": {\n  "files": { "command": "npx", "args": ["-y", "files"], "disabled": true, "autoApprove": [] } } }',
  opencode:
    '{\n  "$schema": "https://opencode.ai/config.json",\n  "mcp": {\n    "files": { "type": "local", "command": ["npx", "-y", "files"], "environment": { "A": "{env:A}" }, "enabled": true }\n  }\n}\n',
};

describe.each(clients.map((client) => [client.id, client] as const))("%s", (id, client) => {
  const text = files[id] ?? "";
  const prepare = (content = text): string => {
    const file = client.files(place)[0] ?? "";
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    return file;
  };
  const plan = (keeps = false): ReturnType<typeof planInstall> =>
    planInstall(client, { place, launcher, config: configFile(), keeps });

  test("gets one entry, its servers move to our config, and uninstalling gives back every byte", async () => {
    const file = prepare();
    applyInstall(await plan());
    const after = readFileSync(file, "utf8");
    expect(after).toMatchSnapshot("its file");
    expect(readFileSync(configFile(), "utf8")).toMatchSnapshot("our config");
    expect(statSync(configFile()).mode & 0o777).toBe(0o600);
    const [entry] = readLedger();
    if (entry === undefined) throw new Error("the ledger is empty");
    const restored = await planUninstall(client, entry);
    expect(restored.kind).toBe("restored");
    applyUninstall(restored);
    expect(readFileSync(file, "utf8")).toBe(text);
    expect(readLedger()).toEqual([]);
  });

  test("with --keep gets our entry beside its own, and a second installation changes nothing", async () => {
    const file = prepare();
    applyInstall(await plan(true));
    const names = Object.keys(await readSection(client, file, readFileSync(file, "utf8")));
    expect(names).toContain("junctor");
    expect(names).toContain("files");
    const again = await plan(true);
    expect(again.text).toBe(again.file.text);
    expect(again.config.text).toBe(again.config.file.text);
  });

  test("that was edited after the installation loses our entry only, and gets its servers back", async () => {
    const file = prepare();
    applyInstall(await plan());
    const edited = readFileSync(file, "utf8").replace("attach", "attach ").concat("\n");
    writeFileSync(file, edited);
    const [entry] = readLedger();
    if (entry === undefined) throw new Error("the ledger is empty");
    const restored = await planUninstall(client, entry);
    expect(restored.kind).toBe("merged");
    applyUninstall(restored);
    const now = await readSection(client, file, readFileSync(file, "utf8"));
    expect(now).toEqual(await readSection(client, file, text));
  });

  test("with comments and odd spacing keeps them, and uninstalling gives back every byte", async () => {
    const odd = toOdd(client.format, text);
    const file = prepare(odd);
    const before = await readSection(client, file, odd);
    const planned = await plan(true);
    applyInstall(planned);
    const after = readFileSync(file, "utf8");
    expect(await readSection(client, file, after)).toEqual({ ...before, junctor: planned.entry });
    for (const line of odd.split("\n").filter((each) => /odd|[#/]/.test(each))) expect(after).toContain(line);
    const [entry] = readLedger();
    if (entry === undefined) throw new Error("the ledger is empty");
    applyUninstall(await planUninstall(client, entry));
    expect(readFileSync(file, "utf8")).toBe(odd);
  });

  test("with an entry named junctor that a person wrote replaces it, and uninstalling gives it back", async () => {
    const own = withEntry(client, text);
    const file = prepare(own);
    const before = await readSection(client, file, own);
    expect(before).toHaveProperty("junctor");
    const planned = await plan(true);
    applyInstall(planned);
    const after = await readSection(client, file, readFileSync(file, "utf8"));
    expect(after).toEqual({ ...before, junctor: planned.entry });
    expect(readFileSync(configFile(), "utf8")).not.toContain("by-hand");
    const [entry] = readLedger();
    if (entry === undefined) throw new Error("the ledger is empty");
    // An edit of the person leaves no bytes to give back; the entry is put back all the same.
    const edited = `${readFileSync(file, "utf8")}\n`;
    writeFileSync(file, edited);
    const merged = await planUninstall(client, entry);
    expect(await readSection(client, file, merged.text ?? "")).toEqual(before);
    writeFileSync(file, edited.slice(0, -1));
    applyUninstall(await planUninstall(client, entry));
    expect(readFileSync(file, "utf8")).toBe(own);
  });

  test("without a file gets one, and uninstalling removes it", async () => {
    const file = client.files(place)[0] ?? "";
    applyInstall(await plan());
    expect(Object.keys(await readSection(client, file, readFileSync(file, "utf8")))).toEqual(["junctor"]);
    const [entry] = readLedger();
    if (entry === undefined) throw new Error("the ledger is empty");
    applyUninstall(await planUninstall(client, entry));
    expect(existsSync(file)).toBe(false);
  });

  test("with a malformed file is refused, and the file stays as it is", async () => {
    const broken =
      client.format === "json" ? '{ "a": ' : client.format === "toml" ? "[a\nb = " : "a: [1\nb: {";
    const file = prepare(broken);
    await expect(plan()).rejects.toThrow("is left as it is");
    expect(readFileSync(file, "utf8")).toBe(broken);
    expect(existsSync(configFile())).toBe(false);
  });

  test("with a link and a mode of its own keeps both", async () => {
    const file = prepare();
    const real = join(home, "elsewhere");
    writeFileSync(real, text);
    chmodSync(real, 0o640);
    rmSync(file);
    symlinkSync(real, file);
    applyInstall(await plan());
    expect(lstatSync(file).isSymbolicLink()).toBe(true);
    expect(statSync(real).mode & 0o777).toBe(0o640);
    expect(readFileSync(real, "utf8")).toContain("junctor");
  });

  test("with a read-only file is refused, and nothing is written into it", async () => {
    const file = prepare();
    chmodSync(file, 0o444);
    const planned = await plan();
    expect(() => applyInstall(planned)).toThrow("it is read-only");
    expect(readFileSync(file, "utf8")).toBe(text);
  });
});

/** The same settings with comments and blanks where they may stand. */
function toOdd(format: ClientProgram["format"], text: string): string {
  if (format === "toml") return `# odd\n\n\n${text.replaceAll(" = ", "   =  ")}\n\n  # odd end\n\n`;
  if (format === "yaml")
    return `# odd\n\n${text.replaceAll("\n  files:", "\n\n  # odd\n  files:   # odd")}\n\n# odd end\n\n`;
  const spaced = text.replaceAll('": ', '"  :\t').replaceAll('":{', '" : {');
  return `\n\n  ${spaced.replace("{", "{ /* odd */ \n\n // odd, too\n")}\n\n// odd end\n`;
}

/** The file with an entry under our name. */
function withEntry({ format, section }: ClientProgram, text: string): string {
  if (format === "toml") return `${text}\n[mcp_servers.junctor]\ncommand = "by-hand"\nargs = []\n`;
  if (format === "yaml")
    return text.replace("  files:", "  junctor:\n    type: stdio\n    cmd: by-hand\n    args: []\n  files:");
  const head = new RegExp(`"${section}"\\s*:\\s*\\{`);
  return text.replace(head, (found) => `${found} "junctor": { "command": "by-hand", "args": [] }, `);
}

test("a file that another program changes between the plan and the edit is left as it is", async () => {
  const client = clientCalled("cursor");
  const file = client.files(place)[0] ?? "";
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "{}");
  const planned = await planInstall(client, { place, launcher, config: configFile(), keeps: false });
  writeFileSync(file, '{ "other": 1 }');
  expect(() => applyInstall(planned)).toThrow("another program changed it meanwhile");
  expect(readFileSync(file, "utf8")).toBe('{ "other": 1 }');
});

test("the same server of two clients is one, and another server of the same name gets another name", async () => {
  for (const [id, command] of [
    ["cursor", "npx"],
    ["windsurf", "npx"],
    ["gemini", "uvx"],
  ] as const) {
    const client = clientCalled(id);
    const file = client.files(place)[0] ?? "";
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify({ mcpServers: { files: { command, args: ["files"] } } }));
    applyInstall(await planInstall(client, { place, launcher, config: configFile(), keeps: false }));
  }
  const { mcpServers } = JSON.parse(readFileSync(configFile(), "utf8")) as { mcpServers: object };
  expect(mcpServers).toEqual({
    files: { command: "npx", args: ["files"] },
    "files-gemini": { command: "uvx", args: ["files"] },
  });
});

test("a server that one client has off and another has on is on", async () => {
  for (const [id, disabled] of [
    ["cursor", true],
    ["windsurf", false],
    ["gemini", true],
  ] as const) {
    const client = clientCalled(id);
    const file = client.files(place)[0] ?? "";
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify({ mcpServers: { files: { command: "npx", disabled } } }));
    applyInstall(await planInstall(client, { place, launcher, config: configFile(), keeps: false }));
  }
  const { mcpServers } = JSON.parse(readFileSync(configFile(), "utf8")) as { mcpServers: object };
  expect(mcpServers).toEqual({ files: { command: "npx", args: [] } });
});

test("a server that our config cannot have stays with the client, and the others are taken over", async () => {
  const client = clientCalled("cursor");
  const file = client.files(place)[0] ?? "";
  mkdirSync(dirname(file), { recursive: true });
  const odd = { "": { command: "x" }, ftp: { url: "ftp://example.com" }, made: { command: "${FOO-x}" } };
  writeFileSync(file, JSON.stringify({ mcpServers: { ...odd, files: { command: "npx" } } }));
  const plan = await planInstall(client, { place, launcher, config: configFile(), keeps: false });
  expect([...plan.imported.keys()]).toEqual(["files"]);
  expect(plan.stays.get("ftp")).toBe(
    'our config cannot have it: mcpServers.ftp.url must begin with http:// or https://: write "https://example.com/mcp"',
  );
  applyInstall(plan);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ mcpServers: { junctor: plan.entry, ...odd } });
});

test("a server that a client limits to some tools stays with the client", async () => {
  const limits = {
    codex: { enabled_tools: ["a"] },
    gemini: { excludeTools: ["b"] },
    windsurf: { disabledTools: ["c"] },
    copilot: { tools: ["d"] },
  };
  for (const [id, limit] of Object.entries(limits))
    expect(toOurEntry(clientCalled(id), { command: "x", ...limit })).toEqual({
      kind: "stays",
      why: `the client limits its tools (${Object.keys(limit)[0]})`,
    });
  expect(toOurEntry(clientCalled("copilot"), { command: "x", tools: ["*"] }).kind).toBe("entry");
  expect(toOurEntry(clientCalled("windsurf"), { command: "x", disabledTools: [] }).kind).toBe("entry");
});

test("every setting of an entry that our config does not get is named", () => {
  const dropped = (id: string, value: object): unknown => {
    const taken = toOurEntry(clientCalled(id), value);
    return taken.kind === "entry" ? taken.dropped : taken.why;
  };
  expect(dropped("gemini", { command: "x", args: ["y"], trust: true, timeout: 9 })).toEqual([
    "trust",
    "timeout",
  ]);
  expect(dropped("codex", { url: "https://a.b", bearer_token_env_var: "T", tool_timeout_sec: 1 })).toEqual([
    "tool_timeout_sec",
  ]);
  expect(dropped("codex", { command: "x", env_vars: ["A"], startup_timeout_sec: 1 })).toEqual([
    "startup_timeout_sec",
  ]);
  const requestOptions = { headers: { A: "b" }, timeout: 9 };
  expect(dropped("cursor", { url: "https://a.b", requestOptions })).toEqual(["requestOptions.timeout"]);
  expect(dropped("cursor", { command: "x", url: "https://a.b", headers: {} })).toEqual(["url", "headers"]);
  expect(dropped("cursor", { command: "x", tools: { one: false } })).toEqual(["tools"]);
  expect(dropped("cursor", { type: "stdio", command: "x", env: { A: "b" }, disabled: true })).toEqual([]);
});

test("servers with state of one user get a process for each session", async () => {
  const client = clientCalled("cursor");
  const file = client.files(place)[0] ?? "";
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(
    file,
    JSON.stringify({ mcpServers: { web: { command: "npx", args: ["@playwright/mcp@latest"] } } }),
  );
  applyInstall(await planInstall(client, { place, launcher, config: configFile(), keeps: false }));
  expect(JSON.parse(readFileSync(configFile(), "utf8"))).toMatchObject({
    junctor: { servers: { web: { sharing: "perSession" } } },
  });
});

describe("the ledger", () => {
  const client = clientCalled("cursor");
  const fileOfCursor = (): string => join(home, ".cursor", "mcp.json");
  const prepare = (text: string): void => {
    mkdirSync(join(home, ".cursor"), { recursive: true });
    writeFileSync(fileOfCursor(), text);
  };
  const installInto = async (keeps = false): Promise<void> =>
    applyInstall(await planInstall(client, { place, launcher, config: configFile(), keeps }));
  const uninstall = async (): Promise<string> => {
    const [entry, ...others] = readLedger();
    if (entry === undefined || others.length > 0) throw new Error("there must be one entry");
    const restored = await planUninstall(client, entry);
    applyUninstall(restored);
    expect(readLedger()).toEqual([]);
    return restored.kind;
  };
  const a = { command: "a" };
  const b = { command: "b" };

  test("joins two installations into a file: uninstalling gives back the bytes before the first", async () => {
    const text = JSON.stringify({ mcpServers: { a } });
    prepare(text);
    await installInto(true);
    await installInto();
    expect(await uninstall()).toBe("restored");
    expect(readFileSync(fileOfCursor(), "utf8")).toBe(text);
  });

  test("joins two installations with an edit between them: uninstalling gives back the servers of both", async () => {
    prepare(JSON.stringify({ mcpServers: { a } }));
    await installInto();
    const { mcpServers } = JSON.parse(readFileSync(fileOfCursor(), "utf8")) as { mcpServers: object };
    prepare(JSON.stringify({ mcpServers: { ...mcpServers, b } }));
    await installInto();
    expect(await uninstall()).toBe("merged");
    expect(JSON.parse(readFileSync(fileOfCursor(), "utf8"))).toEqual({ mcpServers: { a, b } });
  });

  test("forgets an installation that a person undid by hand before the next one", async () => {
    prepare(JSON.stringify({ mcpServers: { a } }));
    await installInto();
    const text = JSON.stringify({ mcpServers: { b } });
    prepare(text);
    await installInto();
    expect(await uninstall()).toBe("restored");
    expect(readFileSync(fileOfCursor(), "utf8")).toBe(text);
  });

  test("is written before the file, so an installation that is killed can be undone", async () => {
    prepare("{}");
    mkdirSync(join(home, ".junctor", "backups", "ledger.json"), { recursive: true });
    await expect(installInto()).rejects.toThrow("EISDIR");
    expect(readFileSync(fileOfCursor(), "utf8")).toBe("{}");
  });

  test("that is malformed is an error that says so", () => {
    mkdirSync(join(home, ".junctor", "backups"), { recursive: true });
    writeFileSync(join(home, ".junctor", "backups", "ledger.json"), "{");
    expect(() => readLedger()).toThrow("it is not valid JSON");
  });

  test("has no note of an installation that could not be written", async () => {
    prepare("{}");
    chmodSync(fileOfCursor(), 0o444);
    await expect(installInto()).rejects.toThrow("it is read-only");
    expect(readLedger()).toEqual([]);
  });

  test("knows a file that was made in a folder behind a link", async () => {
    mkdirSync(join(home, "real"));
    symlinkSync("real", join(home, ".cursor"));
    await installInto();
    expect(await uninstall()).toBe("restored");
    expect(existsSync(fileOfCursor())).toBe(false);
  });

  test("lets go of a file whose folder was removed, or that was ours alone", async () => {
    prepare(JSON.stringify({ mcpServers: { a } }));
    await installInto();
    rmSync(join(home, ".cursor"), { recursive: true });
    await uninstall();
    expect(existsSync(join(home, ".cursor"))).toBe(false);
    mkdirSync(join(home, ".cursor"));
    await installInto();
    rmSync(fileOfCursor());
    await uninstall();
    expect(existsSync(fileOfCursor())).toBe(false);
  });
});

test("a file that a whole group may write stays so, whatever the umask", async () => {
  const client = clientCalled("cursor");
  const file = client.files(place)[0] ?? "";
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "{}");
  chmodSync(file, 0o666);
  applyInstall(await planInstall(client, { place, launcher, config: configFile(), keeps: false }));
  expect(statSync(file).mode & 0o777).toBe(0o666);
});
