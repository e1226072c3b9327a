// Mistakes that people make. Each ends the command with one message that says what is wrong, where, and what to type.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CliGateway, startCliGateway } from "../gateway/support/cli-gateway.ts";
import { cliServer } from "../support/config-file.ts";
import { bin, junctor, type Run, type RunOptions } from "../support/junctor-bin.ts";
import { until } from "../support/until.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "junctor-mistakes-")));
const key = "the-right-key-of-ada";

/** Texts with these in braces are filled in when everything runs. */
const places: { [name: string]: string } = { folder, node: process.execPath, bin };

/** A web server: a status by its path, and one path that refuses a token. It stands for the registry of npm, too. */
const web: Server = createServer((request, response) => {
  if (request.url === "/expired") {
    const body = { error: "invalid_token", error_description: "The token expired" };
    response.writeHead(401, { "content-type": "application/json" }).end(JSON.stringify(body));
    return;
  }
  const status = Number(/^\/(\d+)$/.exec(request.url ?? "")?.[1] ?? 404);
  response.writeHead(status, { "content-type": "text/html" }).end("<!doctype html><title>Welcome</title>");
});

const files = cliServer({ tools: ["read_file", "write_file"] });
const fails = (words: string): object => ({
  command: process.execPath,
  args: ["-e", `console.error(${JSON.stringify(words)}); process.exitCode = 1`],
});

let gateway: CliGateway;

beforeAll(async () => {
  mkdirSync(join(folder, "empty"));
  write("mcp.json", { mcpServers: { files } });
  const keys = { ada: { sha256: createHash("sha256").update(key).digest("hex") } };
  const keyed = { mcpServers: { files, gone: fails("API token expired (401)") }, junctor: { keys } };
  write("keyed.json", keyed);
  web.listen(0, "127.0.0.1");
  await once(web, "listening");
  const { port } = web.address() as AddressInfo;
  places["port"] = String(port);
  places["web"] = `http://127.0.0.1:${port}`;
  gateway = startCliGateway(join(folder, "keyed.json"), "--port", "0");
  places["gateway"] = `http://127.0.0.1:${await gateway.port}`;
});

afterAll(async () => {
  web.close();
  await gateway[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

function write(name: string, content: object | string): string {
  const file = join(folder, name);
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

function fill(text: string): string {
  return text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => places[name] ?? whole);
}

/** Runs a command as if it were typed; words have no spaces in them unless they are given as a list. */
function type(words: string | readonly string[], options: RunOptions = {}): Promise<Run> {
  const args = typeof words === "string" ? words.split(" ") : words;
  return junctor(args.map(fill), {
    cwd: join(folder, "empty"),
    ...options,
    env: {
      npm_config_cache: join(folder, "npm"),
      npm_config_registry: `${places["web"]}/`,
      npm_config_update_notifier: "false",
      ...options.env,
    },
  });
}

/** One message on the standard error stream, nothing else, and no success. */
async function expectMessage(run: Promise<Run>, code: number, message: string): Promise<void> {
  expect(await run).toEqual({ code, stdout: "", stderr: `junctor: ${fill(message)}\n` });
}

type Row = readonly [words: string | readonly string[], message: string];

describe.concurrent("words, flags and values that are not known", () => {
  test.each<Row>([
    ["chekc", 'there is no command "chekc"; did you mean junctor check?'],
    ["start", 'there is no command "start"; did you mean junctor serve?'],
    ["ui", 'there is no command "ui"; did you mean junctor open?'],
    ["list", 'there is no command "list"; did you mean junctor tools?'],
    ["run", 'there is no command "run"; did you mean junctor serve?'],
    ["dashboard", 'there is no command "dashboard"; did you mean junctor open?'],
    ["serve -p 3000", "unknown flag -p; did you mean --port PORT?"],
    ["check -c mcp.json", "unknown flag -c; did you mean --config FILE?"],
    ["serve --verbose", "unknown flag --verbose; did you mean --log-level debug?"],
    ["serve --prot 3000", "unknown flag --prot; did you mean --port?"],
    ["serve --config", "--config needs a value: --config FILE"],
    ["check mcp.json", 'check takes no operand, but got "mcp.json"; write --config mcp.json'],
    ["serve --port http", '--port needs a port number from 0 to 65535, not "http"'],
    ["serve --stdio --port 0", "choose one of --stdio and --port"],
    ["serve --workers many", '--workers needs a number from 1 to 256, or auto, not "many"'],
    ["call", "call needs the name of a tool: junctor call TOOL [KEY=VALUE…]; junctor tools lists them"],
    [
      "call add --a 1",
      "unknown flag --a; an argument of the tool is written a=VALUE, and flags of a server's own command go after --",
    ],
    [
      ["tools", "http://127.0.0.1:9/mcp", "--header", "Authorization Bearer KEY"],
      '--header needs a name, a colon and a value, such as --header "Authorization: Bearer KEY"',
    ],
    [
      "tools --env NO_SUCH_TOKEN -- node x.js",
      "--env NO_SUCH_TOKEN: there is no such variable here; write --env NO_SUCH_TOKEN=VALUE",
    ],
    ["tools ./mcp.json", '"./mcp.json" is not a URL; a config is named by --config ./mcp.json'],
    [
      "tools localhost:3000/mcp",
      '"localhost:3000/mcp" is not a URL; did you mean http://localhost:3000/mcp?',
    ],
    ["tools ws://localhost/mcp", "ws:// is not spoken here; use http://, https:// or tcp://HOST:PORT"],
    ["install cursr", 'no client is called "cursr"; did you mean cursor?'],
    [
      "audit verify calls.jsonl",
      "calls.jsonl does not exist; name the file of junctor.audit, or --config FILE",
    ],
    ["check", "name a config: --config FILE (there is no junctor.json, .mcp.json, mcp.json here)"],
  ])("%j", async (words, message) => {
    await expectMessage(type(words), 2, message);
  });
});

describe.concurrent("a config that", () => {
  const example = '{ "mcpServers": { "NAME": { "command": "npx", "args": ["-y", "a-server"] } } }';
  test.each<readonly [what: string, name: string, content: object | string, message: string]>([
    [
      "lacks a comma",
      "comma.json",
      '{ "mcpServers": {\n  "a": { "command": "npx" }\n  "b": {} } }',
      'expected "," or "}", found a string: is a comma missing before it?',
    ],
    ["is empty", "nothing.json", "", `is empty: write ${example}`],
    [
      "is YAML",
      "mcp.yaml",
      "mcpServers:\n  a:\n    command: npx\n",
      'is not JSON: write the config as { "mcpServers": { … } }, in a file such as mcp.json',
    ],
    ["is another program's", "package.json", { name: "x", version: "1" }, `has no servers: write ${example}`],
    [
      "has servers and nothing around them",
      "bare.json",
      { files },
      'has no servers: write { "mcpServers": { "files": … } } around them',
    ],
    [
      "misspells mcpServers",
      "key.json",
      { mcpServer: { files } },
      "mcpServer: is not known here: did you mean mcpServers?",
    ],
    [
      "misspells command",
      "command.json",
      { mcpServers: { a: { comand: "npx" } } },
      "mcpServers.a.comand: is not known here: did you mean command?",
    ],
    [
      "has the whole command line in a list",
      "list.json",
      { mcpServers: { a: { command: ["npx", "x"] } } },
      'mcpServers.a.command: must be a string, not an array: write "command": "npx" and what follows it into "args": ["--port", "1"]',
    ],
    [
      "has args in one text",
      "args.json",
      { mcpServers: { a: { command: "node", args: "x.js" } } },
      'mcpServers.a.args: must be an array of strings, not a string: write "args": ["--port", "1"]',
    ],
    [
      "has a url without http://",
      "url.json",
      { mcpServers: { a: { url: "localhost:3000" } } },
      'mcpServers.a.url: must begin with http:// or https://: write "https://example.com/mcp"',
    ],
    [
      "has both a command and a url",
      "both.json",
      { mcpServers: { a: { command: "npx", url: "http://127.0.0.1:9/mcp" } } },
      "mcpServers.a: has both command and url: keep the one the server is reached by",
    ],
    [
      "has a server twice",
      "twice.json",
      '{ "mcpServers": {\n"a": { "command": "x" },\n"a": { "command": "y" } } }',
      "mcpServers.a: is written twice, in lines 2 and 3: keep one of them",
    ],
    [
      "has settings for a server that it does not have",
      "settings.json",
      { mcpServers: { files }, junctor: { servers: { fils: { deny: ["x"] } } } },
      "junctor.servers.fils: is not the name of a server: did you mean files?",
    ],
    [
      "has a number in quotes",
      "number.json",
      { mcpServers: { files }, junctor: { http: { port: "3000" } } },
      "junctor.http.port: must be a number, not a string: write 7780",
    ],
  ])("%s", async (_what, name, content, message) => {
    const file = write(name, content);
    const { stderr, ...said } = await type(["check", "--config", file]);
    // The line and column of each kind of mistake are in the tests of the parser.
    const withoutPlace = stderr.replace(/(\.json):\d+:\d+: /, "$1: ");
    await expectMessage(Promise.resolve({ ...said, stderr: withoutPlace }), 2, `${file}: ${message}`);
  });

  test.each<Row>([
    ["check --config nope.json", "nope.json: does not exist: create it, or name another file"],
    [
      "check --config ~/mcp.json",
      "~/mcp.json: does not exist: the shell fills in ~ only without quotes; write the whole path",
    ],
    ["check --config {folder}", "{folder}: is a folder: name the file in it"],
    [
      "attach --config nope.json",
      "{folder}/empty/nope.json: does not exist: create it, or name another file",
    ],
    [
      "serve --stdio --profile work --config {folder}/mcp.json",
      '{folder}/mcp.json has no profile "work"; it has none, so leave out --profile',
    ],
    [
      "serve --config {folder}/mcp.json --host 0.0.0.0",
      'Refusing to listen on 0.0.0.0: others can reach that address, and the config has neither keys nor issuers: write "junctor": { "keys": { "NAME": { "env": "VARIABLE" } } }. Use 127.0.0.1 or ::1.',
    ],
    ["tools fils --config {folder}/mcp.json", '{folder}/mcp.json has no server "fils"; did you mean files?'],
    ["remove fils --config {folder}/mcp.json", '{folder}/mcp.json has no server "fils"; did you mean files?'],
    [
      "call fils__read_file --config {folder}/mcp.json",
      'no server of {folder}/mcp.json can have a tool "fils__read_file"; did you mean files__read_file?',
    ],
    [
      "call files__raed_file --config {folder}/mcp.json",
      'there is no tool "files__raed_file"; did you mean files__read_file?',
    ],
    [
      "why ada fils__read_file --config {folder}/keyed.json",
      'no server of {folder}/keyed.json can have a tool "fils__read_file"; did you mean files__read_file?',
    ],
  ])("is not as %j takes it", async (words, message) => {
    await expectMessage(type(words), 2, message);
  });

  test.skipIf(process.platform === "win32")("this user may not read", async () => {
    const file = write("secret.json", { mcpServers: {} });
    execFileSync("chmod", ["000", file]);
    const uid = process.getuid?.() === 0 ? 65_534 : undefined;
    const message = `${file}: may not be read by this user: chmod u+r makes its owner a reader, or name another file`;
    await expectMessage(type(["check", "--config", file], { uid, cwd: "/" }), 2, message);
  });
});

describe.concurrent("a tool or a caller", () => {
  const demo = "-- {node} {bin} serve --stdio";
  test.each<Row>([
    [`call add a=one b=2 ${demo}`, "a=one is not a number (add takes a=number b=number)"],
    [`call add x=1 ${demo}`, 'there is no argument "x" (add takes a=number b=number)'],
    [`call add a=1 ${demo}`, "b is missing (add takes a=number b=number)"],
    [`call add 1 2 ${demo}`, '"1" is not of the form key=value (add takes a=number b=number)'],
  ])("%j", async (words, message) => {
    await expectMessage(type(words), 2, message);
  });

  test("arguments that are not JSON", async () => {
    const { code, stderr } = await type(`call add --args {a:1} ${demo}`);
    expect(code).toBe(2);
    // Each version of Node.js says it in other words.
    expect(stderr).toMatch(/^junctor: --args is not JSON: .*; write --args '\{"name": "value"\}'\n$/);
  });

  test("that do not exist", async () => {
    const { code, stdout } = await type("why bob files__read_file --config {folder}/keyed.json");
    expect({ code, stdout }).toEqual({
      code: 1,
      stdout:
        "bob may not use files__read_file: no key, issuer or certificate of the config makes a caller of this name; it has keys for ada\n",
    });
  });

  test("that its server did not list", async () => {
    await expect.poll(() => gateway.log.map(({ msg }) => msg)).toContain("files is up");
    const run = (): Promise<Run> =>
      type("why ada files__raed_file --config {folder}/keyed.json", { cwd: process.cwd() });
    // What a server listed, started in the same folder, is written to the disk a moment later.
    await expect.poll(async () => (await run()).code).toBe(2);
    const message =
      'no server of {folder}/keyed.json listed a tool "files__raed_file" when it ran last; did you mean files__read_file?';
    await expectMessage(run(), 2, message);
  });
});

describe.concurrent("a server that", () => {
  test.each<Row>([
    [
      "tools http://127.0.0.1:9/mcp",
      "The request was not sent: http://127.0.0.1:9: nothing listens there (connection refused); start the server (junctor serve starts a gateway), or name another with --server URL or -- COMMAND",
    ],
    [
      "tools https://127.0.0.1:{port}/mcp",
      "The request was not sent: https://127.0.0.1:{port}: it does not speak TLS (ERR_SSL_WRONG_VERSION_NUMBER); it may speak plain HTTP: write http://, or correct the port",
    ],
    ["tools {web}/200", "{web}/200 answered 200 with a web page: is this the URL of an MCP endpoint?"],
    [
      "tools {web}/404",
      "{web}/404 answered 404 (is this the URL of an MCP endpoint?); most end in /mcp or /sse",
    ],
    [
      "tools {web}/301",
      "{web}/301 redirects (301), which is not followed because headers may hold keys; use the address it leads to",
    ],
    [
      "tools {web}/500",
      "{web}/500 answered 500; that is a fault of the server: see its log, or try again later",
    ],
    ["tools {gateway}/mcp", '{gateway}/mcp wants authentication: --header "Authorization: Bearer KEY"'],
    [
      ["tools", "{gateway}/mcp", "--header", "Authorization: Bearer the-wrong-key"],
      '{gateway}/mcp refused the key of --header "Authorization: …": it is not valid there, or expired; it says: This key is not valid here: send another in the header Authorization: Bearer KEY',
    ],
    [
      ["tools", "{gateway}/mcp", "--header", `Authorization: ${key}`],
      '{gateway}/mcp refused the header Authorization: write Bearer before the key: --header "Authorization: Bearer KEY"; it says: This key is not valid here: send another in the header Authorization: Bearer KEY',
    ],
    [
      ["tools", "{web}/expired", "--header", "Authorization: Bearer old"],
      '{web}/expired refused the key of --header "Authorization: …": it is not valid there, or expired; it says: The token expired',
    ],
    ["tools -- nxp -y x", 'Could not connect to nxp -y x: there is no program "nxp" here; did you mean npx?'],
    [
      ["tools", "--", "node x.js"],
      'Could not connect to "node x.js": there is no program "node x.js" here; write the program and its arguments as words of their own: -- node x.js',
    ],
    [
      "tools -- node x.js",
      "Could not connect to node x.js: it exited with code 1; there is no file {folder}/empty/x.js: correct the path.\nIt wrote:\n  Error: Cannot find module '{folder}/empty/x.js'",
    ],
  ])("%j names", async (words, message) => {
    await expectMessage(type(words), 3, message);
  });
});

describe.concurrent("starting or asking a gateway", () => {
  test.each<Row>([
    [
      "serve --config {folder}/mcp.json --port {port}",
      "port {port} of 127.0.0.1 is taken (EADDRINUSE), and junctor status shows whether by a gateway of yours; choose another port with --port PORT",
    ],
    [
      "serve --config {folder}/keyed.json --host 203.0.113.9 --port 0",
      "cannot listen on 203.0.113.9: it is not an address of this machine; --host 127.0.0.1 serves this machine alone",
    ],
  ])("%j", async (words, message) => {
    await expectMessage(type(words), 3, message);
  });

  test("the port of the admin page is taken", async () => {
    const admin = { port: Number(places["port"]) };
    const file = write("admin.json", { mcpServers: { files }, junctor: { admin } });
    const message =
      'port {port} of 127.0.0.1 is taken (EADDRINUSE), and junctor status shows whether by a gateway of yours; choose another port with "junctor": { "admin": { "port": PORT } }';
    await expectMessage(type(["serve", "--config", file, "--port", "0"]), 3, message);
  });

  test.each(["status", "open", "logs", "restart files"])("%j without a gateway", async (words) => {
    const none = join(folder, "none");
    const env = { XDG_RUNTIME_DIR: none, XDG_CACHE_HOME: none, XDG_STATE_HOME: none };
    const message =
      "no gateway and no daemon of yours runs; junctor serve starts one, and a client with junctor attach the other";
    await expectMessage(type(words, { env }), 2, message);
  });

  test("a gateway has no server of that name", async () => {
    await expectMessage(type("restart fils"), 2, 'There is no server "fils"; there are files, gone');
  });
});

describe("check names what is wrong with each server", () => {
  const at = (path: string, headers?: object): object => ({
    url: `{web}/${path}`,
    ...(headers && { headers }),
  });
  const mistakes: { readonly [name: string]: readonly [entry: object, message: string] } = {
    words: [
      { command: "node x.js" },
      'there is no program as its command says.\n  "command" is the program alone: write "command": "node", and "x.js" as "args": ["x.js"].',
    ],
    nxp: [
      { command: "nxp", args: ["-y", "x"] },
      'there is no program as its command says.\n  Did you mean "command": "npx"?',
    ],
    missing: [
      { command: "no-such-program" },
      'there is no program as its command says.\n  Install "no-such-program", or write its whole path as "command".',
    ],
    cwd: [
      { ...files, cwd: "~/projects" },
      'there is no folder as its cwd says.\n  Its "cwd" is "{folder}/~/projects", which is not a folder: create it, or correct "cwd". A config has no ~: write ${HOME}.',
    ],
    script: [
      { command: "node", args: ["server.js"] },
      "it exited with code 1.\n  It wrote:\n    Error: Cannot find module '{folder}/empty/server.js'\n  There is no file {folder}/empty/server.js: correct the path.",
    ],
    variable: [
      fails("Error: GITHUB_TOKEN is required"),
      'it exited with code 1.\n  It wrote:\n    Error: GITHUB_TOKEN is required\n  It seems to miss a variable: write "env": { "GITHUB_TOKEN": "${GITHUB_TOKEN}" }, and set GITHUB_TOKEN.',
    ],
    unset: [
      { ...files, env: { TOKEN: "${NO_SUCH_TOKEN}" } },
      "a variable it needs is not set: set NO_SUCH_TOKEN, or write ${NO_SUCH_TOKEN:-}.",
    ],
    token: [
      { ...fails("API token expired (401)"), env: { API_TOKEN: "an-old-token" } },
      'it exited with code 1.\n  It wrote:\n    API token expired (401)\n  Its credentials were refused: get new ones, and write them in "env" (API_TOKEN).',
    ],
    stdout: [
      { command: process.execPath, args: ["-e", "console.log('Listening on port 3000')"] },
      "it exited with code 0; it wrote text that is not an MCP message to its standard output.\n  It wrote to its standard output, where only MCP messages belong:\n    Listening on port 3000\n  This program writes other text to its standard output: it must write only MCP messages there. It may need other arguments.",
    ],
    page: [
      at("200"),
      'it answered with HTTP status 200 and no MCP message.\n  The "url" is not the address of an MCP endpoint; most end in /mcp or /sse.',
    ],
    path: [
      at("404"),
      'it answered with HTTP status 404.\n  The "url" is not the address of an MCP endpoint; most end in /mcp or /sse.',
    ],
    moved: [
      at("301"),
      'it answered with HTTP status 301.\n  Write the address that it leads to as "url": redirects are not followed, because headers may hold keys.',
    ],
    keyless: [
      at("expired"),
      'it answered with HTTP status 401.\n  Give it credentials: "headers": { "Authorization": "Bearer ${TOKEN}" }.',
    ],
    expired: [
      at("expired", { Authorization: "Bearer an-old-token" }),
      'it answered with HTTP status 401.\n  It refused the credentials of "headers" (Authorization): the token is wrong, expired or for another server; get a new one.',
    ],
    braces: [
      at("expired", { Authorization: "Bearer $API_TOKEN" }),
      'it answered with HTTP status 401.\n  "headers" names API_TOKEN without braces, so it is not filled in: write ${API_TOKEN}.',
    ],
    refused: [
      { url: "http://127.0.0.1:9/mcp" },
      'nothing listens at its address (ECONNREFUSED).\n  Start that server, or correct the host and port of its "url".',
    ],
    tls: [
      { url: "https://127.0.0.1:{port}/mcp" },
      'it does not speak TLS (ERR_SSL_WRONG_VERSION_NUMBER).\n  It may speak plain HTTP: write http:// in its "url", or correct the port.',
    ],
  };
  let checked: Run;
  beforeAll(async () => {
    const mcpServers = Object.fromEntries(Object.entries(mistakes).map(([name, [entry]]) => [name, entry]));
    const file = write("servers.json", fill(JSON.stringify({ mcpServers })));
    checked = await type(["check", "--config", file]);
  });

  test("and fails", () => {
    expect(checked.code).toBe(1);
    expect(checked.stderr).toMatch(new RegExp(`: 0 of ${Object.keys(mistakes).length} servers are fine\n$`));
    expect(checked.stdout).not.toMatch(/^ +at /m);
  });

  test.each(Object.entries(mistakes))("%s", (name, [, message]) => {
    const blocks = checked.stdout.split("\n\n").slice(1);
    expect(blocks.find((block) => block.startsWith(`${name}: `))?.trimEnd()).toBe(
      `${name}: ${fill(message)}`,
    );
  });
});

test.concurrent("a package that is not in the registry", async () => {
  const { code, stderr } = await type("tools -- npx -y no-such-mcp-server");
  expect(code).toBe(3);
  expect(stderr.split("\n", 1)).toEqual([
    "junctor: Could not connect to npx -y no-such-mcp-server: it exited with code 1; there is no package no-such-mcp-server in the registry of npm, or it is private: correct its name",
  ]);
});

test.concurrent("an install that npx did not finish is named, and what to do about it", async () => {
  const pack = (name: string, manifest: object, main: string): void => {
    mkdirSync(join(folder, name, "package"), { recursive: true });
    write(`${name}/package/package.json`, { name, version: "1.0.0", main: "main.js", ...manifest });
    write(`${name}/package/main.js`, main);
    execFileSync("tar", ["czf", join(folder, `${name}.tgz`), "-C", join(folder, name), "package"]);
  };
  pack("half-part", {}, "exports.words = 'I am whole';\n");
  const dependencies = { "half-part": `file:${join(folder, "half-part.tgz")}` };
  const main = "#!/usr/bin/env node\nconsole.error(require('half-part').words); process.exitCode = 1;\n";
  pack("half-server", { bin: "main.js", dependencies }, main);
  const command = ["npx", "-y", `--package=file:${join(folder, "half-server.tgz")}`, "half-server"];
  const whole = await type(["tools", "--", ...command]);
  expect(whole.stderr).toContain("I am whole");
  const [hash = ""] = readdirSync(join(folder, "npm", "_npx"));
  const left = join(folder, "npm", "_npx", hash);
  // What npx leaves behind when it is killed: it looks installed, and files are missing.
  rmSync(join(left, "node_modules", "half-part", "main.js"));
  const advice = `npx was ended before it finished its install in ${left}: remove that folder, and npx installs it again`;
  const broken = await type(["tools", "--", ...command]);
  expect(broken.code).toBe(3);
  expect(broken.stderr.split("\n", 1)[0]).toContain(`it exited with code 1; ${advice}`);
  const [program, ...args] = command;
  const file = write("half.json", { mcpServers: { half: { command: program, args } } });
  const checked = await type(["check", "--config", file]);
  expect(checked.code).toBe(1);
  expect(checked.stdout).toContain(`\n  N${advice.slice(1)}.\n`);
  // And it is true.
  rmSync(left, { recursive: true });
  expect((await type(["tools", "--", ...command])).stderr).toContain("I am whole");
});

describe.concurrent("a server that was given up says why in its own words", () => {
  const words = "it exited with code 1: API token expired (401)";

  test("wherever the person who runs the gateway looks", async () => {
    const file = write("open.json", { mcpServers: { files, gone: fails("API token expired (401)") } });
    await using open = startCliGateway(file, "--port", "0");
    const url = `http://127.0.0.1:${await open.port}/mcp`;
    await until(() => open.log.some(({ isBroken }) => isBroken === true));
    const pid = String(open.process.pid);
    const [status, called, raw, admin] = await Promise.all([
      type(["status", "--pid", pid]),
      type(["call", "gone__search", "--server", url]),
      callRaw(url, {}),
      type(["open", "--print", "--pid", pid]),
    ]);
    expect(status.code).toBe(1);
    expect(status.stdout).toContain(`${words}; it failed too often, and it is tried again in`);
    expect(called).toEqual({
      code: 3,
      stdout: "",
      stderr: `junctor: the tool "gone__search" is not listed, because gone is down: ${words}\n`,
    });
    expect(raw).toContain(`the call was not sent: ${words}; `);
    const page = new URL(admin.stdout.trim());
    const headers = { authorization: `Bearer ${page.hash.slice("#key=".length)}` };
    for (const path of ["servers", "problems"]) {
      const response = await fetch(`${page.origin}/api/${path}`, { headers });
      expect(await response.text()).toContain(words);
    }
    const broken = open.log.find(({ isBroken }) => isBroken === true);
    expect(broken).toMatchObject({ server: "gone", stderr: "API token expired (401)" });
  });

  test("without the secrets of the config", async () => {
    const token = "t0p-s3cret-t0ken";
    const leaky = {
      ...fails(`The token ${token} or sunshine is wrong`),
      env: { TOKEN: token, PASSWORD: "sunshine" },
    };
    await using open = startCliGateway(write("leaky.json", { mcpServers: { leaky } }), "--port", "0");
    const url = `http://127.0.0.1:${await open.port}/mcp`;
    await until(() => open.log.some(({ msg }) => msg === "leaky is down"));
    const raw = await callRaw(url, {}, "leaky__search");
    expect(raw).toContain("it exited with code 1: The token [secret] or [secret] is wrong; ");
    expect(raw).not.toContain(token);
  });

  test("but not to callers that had to authenticate", async () => {
    await expect.poll(() => gateway.log.some(({ msg }) => msg === "gone is down")).toBe(true);
    const raw = await callRaw(`${places["gateway"]}/mcp`, { authorization: `Bearer ${key}` });
    expect(raw).toContain("the call was not sent: it exited with code 1; ");
    expect(raw).not.toContain("expired");
  });

  /** The answer to a call of a tool of the server that was given up. */
  async function callRaw(
    url: string,
    headers: { readonly [name: string]: string },
    name = "gone__search",
  ): Promise<string> {
    const initialize = {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "a", version: "1" },
    };
    const post = (body: object, more = {}): Promise<Response> =>
      fetch(url, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          ...headers,
          ...more,
        },
        body: JSON.stringify({ jsonrpc: "2.0", ...body }),
      });
    const greeted = await post({ id: 1, method: "initialize", params: initialize });
    await greeted.text();
    const session = { "mcp-session-id": greeted.headers.get("mcp-session-id") ?? "" };
    const answer = await post({ id: 2, method: "tools/call", params: { name } }, session);
    return answer.text();
  }
});
