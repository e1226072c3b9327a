// `junctor config` and `junctor explain`: what a config means, its schema for editors, and what the code of an error means.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { root } from "../source-graph.ts";
import { cliServer } from "../support/config-file.ts";
import { junctor, type Run } from "../support/junctor-bin.ts";

const folder = mkdtempSync(join(tmpdir(), "junctor-config-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const secret = "gims-do-not-show-me-0123456789";
const file = join(folder, "mcp.json");
writeFileSync(
  file,
  `{
  "mcpServers": {
    "files": { "command": "node", "env": { "ROOT": "\${ROOT_OF_FILES:-/srv}" }, "disabledTools": ["rm"] },
    "web": { "url": "https://example.com/mcp", "headers": { "Authorization": "Bearer \${WEB_TOKEN}" } }
  },
  "junctor": {
    "defaults": { "start": "lazy" },
    "servers": { "files": { "timeoutMs": 1000 } },
    "http": { "port": 7000 }
  }
}
`,
  { mode: 0o600 },
);

const run = (...args: readonly string[]): Promise<Run> =>
  junctor(args, { cwd: folder, env: { WEB_TOKEN: secret, XDG_STATE_HOME: folder } });

describe("junctor config show", () => {
  test("prints each setting with where its value came from, and no secret", async () => {
    const { code, stdout } = await run("config", "show", "--config", file);
    expect(code).toBe(0);
    expect(stdout).not.toContain(secret);
    expect(stdout.split("\n")).toEqual(
      expect.arrayContaining([
        file,
        '  mcpServers.files.command = "node"  (line 3)',
        '  mcpServers.files.env = {"ROOT":"/srv"}  (line 3, variable ROOT_OF_FILES)',
        '  mcpServers.files.disabledTools = ["rm"]  (line 3, a key of other clients)',
        '  junctor.servers.files.start = "lazy"  (line 7, of junctor.defaults)',
        "  junctor.servers.files.timeoutMs = 1000  (line 8)",
        "  junctor.http.port = 7000  (line 9)",
      ]),
    );
    expect(stdout).not.toContain("(default)");
  });

  test("prints the defaults too with --all", async () => {
    const { stdout } = await run("config", "show", "--config", file, "--all");
    expect(stdout).toContain('  junctor.separator = "__"  (default)\n');
    expect(stdout).toContain('  junctor.servers.web.start = "lazy"  (line 7, of junctor.defaults)\n');
  });

  test("says the same as JSON", async () => {
    const { stdout } = await run("config", "show", "--config", file, "--json");
    expect(stdout).not.toContain(secret);
    const { settings } = JSON.parse(stdout) as { readonly settings: readonly object[] };
    expect(settings).toEqual(
      expect.arrayContaining([
        { path: "junctor.http.port", value: 7000, from: "file", line: 9 },
        expect.objectContaining({ path: "junctor.separator", value: "__", from: "default" }),
        expect.objectContaining({ path: "mcpServers.files.env", variables: ["ROOT_OF_FILES"] }),
      ]),
    );
  });

  test.each([[[]], [["shwo"]], [["show", "more"]]])("says what to write for: config %j", async (words) => {
    const { code, stderr } = await run("config", ...words);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/config show, or .*config schema/)]);
  });
});

test("junctor config schema prints the schema of the package", async () => {
  const { stdout } = await run("config", "schema");
  expect(stdout).toBe(readFileSync(join(root, "packages/junctor/junctor.schema.json"), "utf8"));
});

test("a config that a command makes names its schema, which is beside it and of this version", async () => {
  const own = join(folder, "own", "junctor.json");
  const schema = join(folder, "own", "junctor.schema.json");
  const { command, args } = cliServer({ tools: ["read"] });
  const add = (name: string): Promise<Run> =>
    run("add", name, "--no-check", "--config", own, "--", command, ...args);
  expect(await add("files")).toMatchObject({ code: 0 });
  expect(JSON.parse(readFileSync(own, "utf8"))).toMatchObject({ $schema: "./junctor.schema.json" });
  const text = readFileSync(schema, "utf8");
  expect(text).toContain('"answerWithinMs"');
  writeFileSync(schema, "{}");
  await add("others");
  expect(readFileSync(schema, "utf8")).toBe(text);
});

test("a config that names no schema gets none", async () => {
  const own = join(folder, "plain", "junctor.json");
  const { command, args } = cliServer({ tools: ["read"] });
  await run("add", "one", "--no-check", "--config", own, "--", command, ...args);
  const { $schema: _, ...rest } = JSON.parse(readFileSync(own, "utf8")) as { readonly $schema: string };
  writeFileSync(own, JSON.stringify(rest));
  await run("add", "two", "--no-check", "--config", own, "--", command, ...args);
  expect(JSON.parse(readFileSync(own, "utf8"))).not.toHaveProperty("$schema");
});

describe("junctor explain", () => {
  test.each(["upstream.busy", "TimeoutError", "32002"])("explains %s", async (word) => {
    const { code, stdout } = await run("explain", word);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\S+\n {2}means +\S/);
    expect(stdout).toContain("what to do");
  });

  test("prints the row as JSON", async () => {
    const [row] = JSON.parse((await run("explain", "upstream.busy", "--json")).stdout) as readonly object[];
    expect(row).toMatchObject({ code: "upstream.busy", className: "UpstreamError" });
  });

  test("guesses the code that was meant", async () => {
    const { code, stderr } = await run("explain", "upstream.buzy");
    expect([code, stderr]).toEqual([2, expect.stringContaining("did you mean upstream.busy?")]);
  });
});
