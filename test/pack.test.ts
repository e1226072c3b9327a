import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { root } from "./source-graph.ts";
import { installPacked } from "./support/packed-project.ts";

// The package as `npm publish` would send it, installed beside its dependencies, as a user has it.
const folder = mkdtempSync(join(tmpdir(), "jp-"));
const installed = join(folder, "node_modules", "junctor");
const main = join(installed, "dist", "cli", "main.js");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(() => void installPacked(folder));

test("npx runs the command of the package", () => {
  const said = execFileSync(
    "npx",
    [
      "--no-install",
      "junctor",
      "call",
      "add",
      "a=1",
      "b=2",
      "--",
      process.execPath,
      main,
      "serve",
      "--stdio",
    ],
    { cwd: folder, encoding: "utf8", env: { ...process.env, HOME: folder } },
  );
  expect(said).toBe("3\n");
});

const run = (...args: readonly string[]): string => {
  const env = { ...process.env, HOME: folder, XDG_RUNTIME_DIR: "" };
  const { stdout, stderr, status } = spawnSync(process.execPath, [main, ...args], {
    cwd: folder,
    env,
    encoding: "utf8",
    input: "",
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
};

test("the package that is published runs, serves, and starts a client's front", () => {
  const { version } = JSON.parse(readFileSync(join(root, "packages/junctor/package.json"), "utf8")) as {
    version: string;
  };
  expect(run("--version")).toBe(`${version}\n`);
  expect(run("call", "add", "a=1", "b=2", "--", process.execPath, main, "serve", "--stdio")).toBe("3\n");
  mkdirSync(join(folder, "config"), { mode: 0o700 });
  const config = join(folder, "config", "servers.json");
  writeFileSync(
    config,
    JSON.stringify({ mcpServers: { demo: { command: process.execPath, args: [main, "serve", "--stdio"] } } }),
    { mode: 0o600 },
  );
  const words = [
    "call",
    "demo__add",
    "a=1",
    "b=2",
    "--",
    process.execPath,
    main,
    "attach",
    "--config",
    config,
  ];
  expect(run(...words)).toBe("3\n");
  expect(run("daemon", "stop", "--config", config)).toContain("ends when its calls are done");
});

test("the library of the package can be imported", () => {
  const code = 'import { createRegistry } from "junctor"; console.log(typeof createRegistry);';
  const said = execFileSync(process.execPath, ["--input-type=module", "--eval", code], {
    cwd: folder,
    encoding: "utf8",
  });
  expect(said).toBe("function\n");
});

test("a tarball has what runs, its types, a README and the licence, and nothing else", () => {
  for (const name of ["junctor", "@junctor/server", "@junctor/client", "@junctor/core"]) {
    const place = join(folder, "node_modules", name);
    const own = name === "junctor" ? ["junctor.schema.json"] : [];
    expect(readdirSync(place).toSorted()).toEqual(["LICENSE", "README.md", "dist", ...own, "package.json"]);
    const files = readdirSync(place, { recursive: true, encoding: "utf8" });
    expect(files.filter((file) => file.endsWith(".ts") && !file.endsWith(".d.ts"))).toEqual([]);
    expect(files.filter((file) => /\.test\.|\.(png|map)$/.test(file))).toEqual([]);
  }
});

describe("alone in an empty project", () => {
  /** Runs a module in a project that has one package of ours, and says what it printed and which of our packages it could load. */
  const runIn = (name: string, code: string, more: readonly string[] = []): string => {
    const project = mkdtempSync(join(folder, "alone-"));
    writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
    installPacked(project, more, name);
    writeFileSync(join(project, "main.mjs"), code);
    return execFileSync(process.execPath, ["main.mjs"], { cwd: project, encoding: "utf8" });
  };
  const registry = `
    import { createRegistry, createServer, listenHttp, serveStdio } from "@junctor/server";
    import { z } from "zod";
    const registry = createRegistry();
    registry.register("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => String(a + b));
    const server = createServer(registry, { name: "calc", version: "1.0.0" });`;

  test("@junctor/server serves on stdio", () => {
    const project = mkdtempSync(join(folder, "alone-"));
    installPacked(project, ["zod"], "@junctor/server");
    writeFileSync(join(project, "server.mjs"), `${registry}\nserveStdio(server);`);
    expect(run("call", "add", "a=1", "b=2", "--", process.execPath, join(project, "server.mjs"))).toBe("3\n");
    expect(readdirSync(join(project, "node_modules", "@junctor")).toSorted()).toEqual(["core", "server"]);
    expect(readdirSync(join(project, "node_modules")).filter((name) => !name.startsWith("."))).toEqual([
      "@junctor",
      "@standard-schema",
      "zod",
    ]);
  });

  test("@junctor/server serves on HTTP, by Node and by fetch", () => {
    const said = runIn(
      "@junctor/server",
      `${registry}
      import { toFetchHandler } from "@junctor/server/fetch";
      const listener = await listenHttp(server, { port: 0 });
      const body = JSON.stringify({
        jsonrpc: "2.0", id: 1, method: "tools/call",
        params: { name: "add", arguments: { a: 1, b: 2 }, _meta: {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
          "io.modelcontextprotocol/clientCapabilities": {},
        } },
      });
      const headers = {
        "content-type": "application/json", accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "add",
      };
      const overHttp = await fetch(listener.url, { method: "POST", headers, body });
      const handler = toFetchHandler(server);
      const byFetch = await handler(new Request("http://localhost/mcp", { method: "POST", headers, body }));
      for (const answer of [overHttp, byFetch]) console.log((await answer.json()).result.content[0].text);
      await listener.close();`,
      ["zod"],
    );
    expect(said).toBe("3\n3\n");
  });

  test("@junctor/client calls a tool", () => {
    const said = runIn(
      "@junctor/client",
      `import { connect } from "@junctor/client";
      const client = await connect({ command: process.execPath, args: [${JSON.stringify(main)}, "serve", "--stdio"] });
      const { content } = await client.callTool("add", { a: 1, b: 2 });
      console.log(content[0].text);
      await client.close();`,
    );
    expect(said).toBe("3\n");
  });
});

test("a tool author installs at most 3 MB, without a schema library", () => {
  const project = mkdtempSync(join(folder, "size-"));
  installPacked(project, [], "@junctor/server");
  const sizeOf = (path: string): number =>
    statSync(path).isDirectory()
      ? readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
      : statSync(path).size;
  const bytes = sizeOf(join(project, "node_modules"));
  expect(bytes).toBeGreaterThan(200 * 1024);
  expect(bytes).toBeLessThanOrEqual(3 * 1024 * 1024);
});

// A server on stdio is started once for each conversation, so what it loads is waited for every time.
test("a server on stdio loads at most 300 KB of JavaScript, and nothing but core and server", () => {
  const project = mkdtempSync(join(folder, "loads-"));
  installPacked(project, [], "@junctor/server");
  const hook = `import { writeSync } from "node:fs";
    export function load(url, context, next) {
      if (url.includes("/node_modules/")) writeSync(1, url + "\\n");
      return next(url, context);
    }`;
  writeFileSync(
    join(project, "main.mjs"),
    `import { register } from "node:module";
    register("data:text/javascript," + encodeURIComponent(${JSON.stringify(hook)}));
    const { createRegistry, createServer, serveStdio } = await import("@junctor/server");
    const registry = createRegistry();
    registry.register("hello", {}, () => "Hello!");
    serveStdio(createServer(registry, { name: "hello", version: "1.0.0" }));`,
  );
  const said = execFileSync(process.execPath, ["main.mjs"], { cwd: project, encoding: "utf8", input: "" });
  const files = said
    .trim()
    .split("\n")
    .map((url) => fileURLToPath(url));
  expect(files.length).toBeGreaterThan(0);
  expect(files.filter((file) => !/@junctor\/(core|server)\/dist\//.test(file))).toEqual([]);
  const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0);
  expect(bytes).toBeLessThanOrEqual(300 * 1024);
});
