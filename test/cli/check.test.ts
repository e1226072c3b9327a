import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { checkServers } from "../../packages/junctor/src/cli/check/check.ts";
import { parseConfigValue } from "../../packages/junctor/src/config/parse-config.ts";
import { startGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { cliServer, makeConfigFolder } from "../support/config-file.ts";
import { junctor } from "../support/junctor-bin.ts";

interface Report {
  readonly file: string;
  readonly servers: readonly {
    readonly name: string;
    readonly trouble?: string;
    readonly code?: string;
    readonly advice?: string;
    readonly stray?: string;
    readonly latencyMs?: number;
  }[];
  readonly collisions: readonly object[];
  readonly warnings: readonly object[];
}

/** Checks a config with `--json` and whatever else is given. */
async function report(
  config: object,
  ...flags: readonly string[]
): Promise<Report & { readonly code: unknown }> {
  await using folder = await makeConfigFolder();
  const { code, stdout } = await junctor([
    "check",
    "--config",
    await folder.write(config),
    "--json",
    ...flags,
  ]);
  return { code, ...(JSON.parse(stdout) as Report) };
}

test("a server that lacks optional methods is fine", async () => {
  const capabilities = { tools: {}, resources: {}, prompts: {} };
  const { code, servers } = await report({ mcpServers: { a: cliServer({ tools: ["x"], capabilities }) } });
  expect({ code, servers }).toMatchObject({ code: 0, servers: [{ status: "up", tools: 1, resources: 0 }] });
  expect(servers[0]).not.toHaveProperty("trouble");
});

test("one that declares tools and cannot list them is not", async () => {
  const { code, servers } = await report({
    mcpServers: { a: { command: process.execPath, args: ["-e", toolless] } },
  });
  expect({ code, servers }).toMatchObject({ code: 1, servers: [{ status: "up", code: "not_listed" }] });
});

const toolless = `require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "a", version: "1" } };
  const outcome = method === "initialize" ? { result } : { error: { code: -32601, message: "no" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
});`;

const endless = `console.error("waiting for the database");
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "a", version: "1" } };
  const page = { tools: [], nextCursor: String(id) };
  const answer = () => console.log(JSON.stringify({ jsonrpc: "2.0", id, result: method === "tools/list" ? page : result }));
  setTimeout(answer, method === "tools/list" ? 100 : 0);
});`;

test.each([
  ["answers nothing", cliServer({ silent: ["tools/list"], stderr: "waiting for the database" })],
  ["never ends", { command: process.execPath, args: ["-e", endless] }],
])("one whose list of tools %s is not fine either", async (_what, hanging) => {
  await using folder = await makeConfigFolder();
  const file = await folder.write({ mcpServers: { good: cliServer({ tools: ["x"] }), hanging } });
  const { code, stdout, stderr } = await junctor(["check", "--config", file, "--timeout", "5"]);
  // On a busy machine the time may be over before a server is up.
  expect(stdout).toMatch(/\nhanging: (its tools are still being listed|it is still starting|it did not)/);
  expect(stdout).toContain("  It wrote:\n    waiting for the database\n");
  expect(stderr).toMatch(/: [01] of 2 servers are fine\n$/);
  expect(code).toBe(1);
});

test("a server that works and writes other text between its messages is fine, and the text is shown", async () => {
  await using folder = await makeConfigFolder();
  const file = await folder.write({ mcpServers: { a: cliServer({ tools: ["x"], stdout: "Welcome!" }) } });
  const { code, stdout } = await junctor(["check", "--config", file]);
  expect(code).toBe(0);
  expect(stdout).toContain("a: it works.\n  It wrote to its standard output");
  expect(stdout).toContain("    Welcome!\n");
});

test("--timeout is how long a server may take, whatever its startTimeoutMs is", async () => {
  const config = {
    mcpServers: { a: cliServer({ tools: ["x"] }) },
    junctor: { servers: { a: { startTimeoutMs: 1 } } },
  };
  const { code, servers } = await report(config, "--timeout", "1m");
  expect({ code, servers }).toMatchObject({ code: 0, servers: [{ status: "up", tools: 1 }] });
});

test("a program and a folder that do not exist are told apart", async () => {
  const { servers } = await report({
    mcpServers: {
      program: { command: "no-such-program" },
      folder: { ...cliServer(), cwd: "/no/such/folder" },
    },
  });
  expect(servers).toMatchObject([
    { code: "no_program", advice: 'Install "no-such-program", or write its whole path as "command".' },
    {
      code: "no_folder",
      advice: 'Its "cwd" is "/no/such/folder", which is not a folder: create it, or correct "cwd".',
    },
  ]);
});

test("a server that ends says what to do, by what it wrote", async () => {
  const ends = (code: string): object => ({ command: process.execPath, args: ["-e", code] });
  const { servers } = await report({
    mcpServers: {
      usage: ends("console.log('Usage: x [options]'); process.exitCode = 2"),
      variable: ends("console.error('Error: API_TOKEN is not set'); process.exitCode = 1"),
      silent: ends("process.exitCode = 3"),
    },
  });
  expect(servers).toMatchObject([
    {
      code: "exited",
      stray: "Usage: x [options]",
      advice: expect.stringContaining("only MCP messages") as string,
    },
    { code: "exited", advice: expect.stringContaining('"env": { "API_TOKEN": "${API_TOKEN}" }') as string },
    { code: "exited", advice: "Run its command by hand to see why it ends." },
  ]);
});

test("a URL that is not an MCP endpoint says what to do, by how it answers", async () => {
  const web = createHttpServer((request, response) => {
    // Nothing else is there: no metadata of an authorization server either.
    const status = Number(/^\/(\d+)$/.exec(request.url ?? "")?.[1] ?? 404);
    response.writeHead(status, { "content-type": "text/html" }).end("<!doctype html><title>Hi</title>");
  });
  web.listen(0, "127.0.0.1");
  await once(web, "listening");
  const { port } = web.address() as AddressInfo;
  const at = (path: string): object => ({ url: `http://127.0.0.1:${port}/${path}` });
  const { servers } = await report({
    mcpServers: {
      page: at("200"),
      closed: at("401"),
      nothing: at("404"),
      moved: at("301"),
      broken: at("500"),
      refused: { url: "http://127.0.0.1:9/mcp" },
      tls: { url: `https://127.0.0.1:${port}/mcp` },
    },
  });
  web.close();
  expect(Object.fromEntries(servers.map(({ name, code }) => [name, code]))).toEqual({
    page: "not_mcp",
    closed: "unauthorized",
    nothing: "no_endpoint",
    moved: "redirected",
    broken: "server_fault",
    refused: "refused",
    tls: "no_tls",
  });
  expect(servers.filter(({ advice }) => advice === undefined)).toEqual([]);
  expect(servers.filter(({ trouble }) => trouble?.includes("127.0.0.1"))).toEqual([]);
});

const odd = {
  mcpServers: { a: cliServer({ tools: ["x", "y"] }), b: cliServer({ tools: ["x"] }) },
  junctor: {
    deny: ["z*"],
    servers: {
      a: { prefix: false, deny: ["yy"], timeoutMs: 60_000, maxTotalMs: 1000 },
      b: { prefix: false },
    },
  },
};

test("--json has the collisions and the warnings too", async () => {
  const { code, file, collisions, warnings } = await report(odd);
  expect({ code, file, collisions }).toEqual({
    code: 0,
    file: expect.stringMatching(/mcp\.json$/) as string,
    collisions: [
      { name: "x", owner: "a", others: ["b"], isReserved: false, advice: expect.any(String) as string },
    ],
  });
  expect(warnings).toEqual([
    {
      path: "junctor.servers.a.timeoutMs",
      message: expect.stringContaining("never reached") as string,
      at: { line: 1, column: expect.any(Number) as number },
    },
    { path: "junctor.servers.a.deny", message: '"yy" matches none of its tools: did you mean y?' },
    { path: "junctor.deny", message: '"z*" matches nothing that a server lists: correct or remove it' },
  ]);
});

test("the text output says the same, each thing once", async () => {
  await using folder = await makeConfigFolder();
  const { code, stdout, stderr } = await junctor(["check", "--config", await folder.write(odd)]);
  expect(code).toBe(0);
  expect(stdout).toContain("x is offered by several servers (a, b); a has it:");
  expect(stdout.match(/warning: /g)).toHaveLength(2);
  expect(stdout).toContain('\nwarning: junctor.servers.a.deny: "yy" matches none');
  expect(stderr.match(/warning: /g)).toHaveLength(1);
});

const quick = (...args: readonly string[]): object => ({
  command: process.execPath,
  args: [fileURLToPath(new URL("../fixtures/children/quick.mjs", import.meta.url)), ...args],
});

test("the line of a server that failed has its last words", async () => {
  await using folder = await makeConfigFolder();
  const script = "console.error('API token expired (401)'); process.exitCode = 1";
  const file = await folder.write({
    mcpServers: { dead: { command: process.execPath, args: ["-e", script] } },
  });
  const { stdout } = await junctor(["check", "--config", file]);
  expect(stdout).toMatch(/^✗ dead {4}failed {4}it exited with code 1: API token expired \(401\)$/m);
});

test("each server is shown when it is known, and one that failed is not called starting", async () => {
  await using folder = await makeConfigFolder();
  const gate = join(folder.path, "gate");
  const file = await folder.write({
    mcpServers: { late: quick(`--wait-for=${gate}`), fine: quick(), dead: quick("--exit") },
  });
  const { stdout } = await junctor(["check", "--config", file], {
    stdin: "",
    // The last one starts only after the others were shown.
    onOutput: (output) => {
      if (/^✓ fine /m.test(output) && /^✗ dead /m.test(output)) writeFileSync(gate, "");
    },
  });
  expect(stdout).toMatch(/^✗ dead {4}failed {4}it exited with code 3$/m);
  expect(stdout.indexOf("✓ late")).toBeGreaterThan(stdout.indexOf("✓ fine"));
});

test("the time that a server takes to answer is its own", async () => {
  const slow = `require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) return;
    const result = method === "initialize"
      ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "a", version: "1" } }
      : method === "tools/list" ? { tools: [] } : {};
    setTimeout(() => console.log(JSON.stringify({ jsonrpc: "2.0", id, result })), method === "ping" ? 500 : 0);
  });`;
  const { servers } = await report({
    mcpServers: { slow: { command: process.execPath, args: ["-e", slow] }, fast: quick(), other: quick() },
  });
  const [late = 0, fast, other] = servers.map(({ latencyMs = Number.NaN }) => latencyMs);
  expect(late).toBeGreaterThanOrEqual(499);
  expect(fast).toBeLessThan(late);
  expect(other).toBeLessThan(late);
});

test("what a server lists counts for the one that has its names in the end", async () => {
  await using folder = await makeConfigFolder();
  const gate = join(folder.path, "gate");
  const config = parseConfigValue(
    {
      mcpServers: { late: quick(`--wait-for=${gate}`, "--tools=echo,own"), soon: quick() },
      junctor: { servers: { late: { prefix: false }, soon: { prefix: false } } },
    },
    { file: "mcp.json", env: {} },
  );
  await using gateway = await startGateway(config, { firstListMs: 300_000 });
  const checked = await checkServers(gateway, {
    config,
    timeoutMs: undefined,
    firstListMs: 300_000,
    view: undefined,
    // Until the other one is there, it has the name.
    onChecked: async ({ name }) => {
      if (name === "soon") writeFileSync(gate, "");
    },
    signal: new AbortController().signal,
  });
  expect(checked).toMatchObject([
    { name: "late", tools: 2 },
    { name: "soon", tools: 0 },
  ]);
});

test("many servers are known in the order in which they come, and those that fail are not tried again", async () => {
  await using folder = await makeConfigFolder();
  const starts = join(folder.path, "starts");
  const gate = join(folder.path, "gate");
  const numbered = (name: string, count: number, entry: (index: number) => object): readonly object[] =>
    Array.from({ length: count }, (_, index) => ({ [`${name}${index}`]: entry(index) }));
  const mcpServers = Object.assign(
    {},
    ...numbered("late", 2, () => quick(`--wait-for=${gate}`, "--chatter")),
    ...numbered("crash", 4, () => quick("--exit", `--starts=${starts}`)),
    ...numbered("fine", 14, () => quick()),
  ) as object;
  const file = await folder.write({ mcpServers, junctor: { maxStarts: 4 } });
  const marksIn = (output: string, mark: string): number => output.split(`\n${mark} `).length - 1;
  const { stdout } = await junctor(["check", "--config", file], {
    stdin: "",
    onOutput: (output) => {
      if (marksIn(output, "✓") === 14 && marksIn(output, "✗") === 4) writeFileSync(gate, "");
    },
  });
  expect(stdout).toMatch(/\n✓ late\d .*\n✓ late\d .*\n\ncrash0: it exited with code 3/);
  // One that ends when it is greeted is started a second time, because the modern greeting may have ended it.
  expect(readFileSync(starts, "utf8").trim().split("\n")).toHaveLength(8);
});

test("it ends when the last servers show no sign of progress, and says so", async () => {
  const clock = createVirtualClock(Date.now());
  const config = parseConfigValue(
    { mcpServers: { fine: quick(), hang: quick("--deaf") } },
    { file: "mcp.json", env: {} },
  );
  await using gateway = await startGateway(config, { clock, firstListMs: 300_000 });
  const known: string[] = [];
  const begun = clock.now();
  let isDone = false;
  const checked = checkServers(gateway, {
    config,
    timeoutMs: undefined,
    firstListMs: 300_000,
    view: undefined,
    onChecked: async ({ name }) => void known.push(name),
    signal: new AbortController().signal,
    clock,
  }).finally(() => {
    isDone = true;
  });
  await expect.poll(() => known).toEqual(["fine"]);
  await expect
    .poll(async () => {
      await clock.advance(500);
      return isDone;
    })
    .toBe(true);
  expect((await checked)[1]).toMatchObject({
    name: "hang",
    status: "starting",
    trouble: expect.stringContaining("without a sign of progress for 15 s") as string,
  });
  // The server itself would have been given up after 30 s, and all of them after 5 minutes.
  expect(clock.now() - begun).toBeLessThan(30_000);
});
