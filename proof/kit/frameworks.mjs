// `npm run proof -- frameworks`: one app inside each framework, probed alike by clients of both eras. The frameworks come from npm, into an
// empty project. Needs a registry; Next takes a minute.

import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "../../packages/client/dist/index.js";
import { root } from "../../scripts/setup.mjs";

const packages = [
  "express@5.3.0 fastify@5.12.8 koa@3.2.1 koa-bodyparser@4.4.1 hono@4.13.18 @hono/node-server@2.1.8 h3@2.0.8",
  "@nestjs/core@12.5.0 @nestjs/common@12.5.0 @nestjs/platform-express@12.5.0 reflect-metadata@0.2.2 rxjs@7.8.2",
  "next@16.4.6 react@19.3.1 react-dom@19.3.1",
].flatMap((line) => line.split(" "));

const app = `import { bearer, createApp } from "@junctor/server";
import { z } from "zod";

export default createApp({ name: "probe", version: "1.0.0", user: bearer((token) => ({ name: token })) })
  .tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b)
  .tool("whoami", {}, (_, { user }) => user.name)
  .tool("sure", {}, async (_, { ask }) => String((await ask("Sure?", z.object({ sure: z.boolean() }))).sure))
  .tool("count", {}, async function* () {
    for (const step of [1, 2, 3]) yield { type: "progress", progress: step, total: 3 };
    yield "done";
  });
`;

const listening = 'import app from "./app.mjs";\nconst port = Number(process.argv[2]);\n';

/** Each framework's program: it listens on the port of its argument. */
const programs = {
  "node:http": 'import { createServer } from "node:http";\ncreateServer(app.node).listen(port, "127.0.0.1");',
  Express: 'import express from "express";\nexpress().all("/mcp", app.node).listen(port, "127.0.0.1");',
  "Express with express.json()":
    'import express from "express";\nexpress().use(express.json()).all("/mcp", app.node).listen(port, "127.0.0.1");',
  "Express, mounted":
    'import express from "express";\nexpress().use("/mcp", app.node).listen(port, "127.0.0.1");',
  Fastify: `import fastify from "fastify";
const server = fastify();
server.all("/mcp", (request, reply) => {
  reply.hijack();
  return app.node(request.raw, reply.raw, request.body);
});
await server.listen({ port, host: "127.0.0.1" });`,
  Koa: `import Koa from "koa";
import bodyParser from "koa-bodyparser";
const koa = new Koa();
koa.use(bodyParser());
koa.use((c) => {
  c.respond = false;
  return app.node(c.req, c.res, c.request.body);
});
koa.listen(port, "127.0.0.1");`,
  Nest: `import "reflect-metadata";
import { All, Controller, Module, Req, Res } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
class Mcp {
  serve(request, response) {
    return app.node(request, response);
  }
}
Req()(Mcp.prototype, "serve", 0);
Res()(Mcp.prototype, "serve", 1);
All("mcp")(Mcp.prototype, "serve", Object.getOwnPropertyDescriptor(Mcp.prototype, "serve"));
Controller()(Mcp);
class Root {}
Module({ controllers: [Mcp] })(Root);
const nest = await NestFactory.create(Root, { logger: false });
await nest.listen(port, "127.0.0.1");`,
  Hono: `import { serve } from "@hono/node-server";
import { Hono } from "hono";
const hono = new Hono();
hono.all("/mcp", (c) => app.fetch(c.req.raw));
serve({ fetch: hono.fetch, port, hostname: "127.0.0.1" });`,
  h3: `import { H3, serve } from "h3";
serve(new H3().all("/mcp", (event) => app.fetch(event.req)), { port, hostname: "127.0.0.1" });`,
};

const project = mkdtempSync(join(tmpdir(), "junctor-frameworks-"));
const words = process.argv.slice(2);
let passed = 0;
let failed = 0;
try {
  install();
  const names = [...Object.keys(programs), "Next"].filter(
    (name) => words.length === 0 || words.includes(name),
  );
  for (const [index, name] of names.entries()) await prove(name, index);
} finally {
  rmSync(project, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function install() {
  writeFileSync(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...packages], {
    cwd: project,
    stdio: "ignore",
  });
  // Copies, as npm would install them: a bundler looks for what they import beside them.
  for (const name of ["core", "server"]) {
    const target = join(project, "node_modules/@junctor", name);
    for (const part of ["dist", "package.json"])
      cpSync(join(root, "packages", name, part), join(target, part), { recursive: true });
  }
  for (const name of ["zod", "@standard-schema/spec"])
    cpSync(join(root, "node_modules", name), join(project, "node_modules", name), { recursive: true });
  writeFileSync(join(project, "app.mjs"), app);
  const route = 'import app from "../../app.mjs";\nexport const dynamic = "force-dynamic";\n';
  mkdirSync(join(project, "app/mcp"), { recursive: true });
  writeFileSync(
    join(project, "app/mcp/route.js"),
    `${route}export const GET = app.fetch, POST = app.fetch, DELETE = app.fetch;\n`,
  );
}

async function prove(name, index) {
  const port = 20_000 + ((process.pid + index * 7) % 20_000);
  const args =
    name === "Next"
      ? ["node_modules/next/dist/bin/next", "dev", "--port", String(port), "--hostname", "127.0.0.1"]
      : [`server${index}.mjs`, String(port)];
  if (name !== "Next") writeFileSync(join(project, `server${index}.mjs`), listening + programs[name]);
  const child = spawn(process.execPath, args, {
    cwd: project,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1" },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  const ended = new Promise((resolve) => child.once("exit", resolve));
  try {
    const url = `http://127.0.0.1:${port}/mcp`;
    await untilUp(url, child);
    for (const revision of ["2026-07-28", "2025-06-18"]) {
      const fault = await probe(url, revision).catch(String);
      if (fault === undefined) passed++;
      else failed++;
      console.log(
        `${fault === undefined ? "ok    " : "FAILED"} ${name}, ${revision}${fault === undefined ? "" : `: ${fault}\n${output.slice(-2000)}`}`,
      );
    }
  } catch (error) {
    failed++;
    console.log(`FAILED ${name}: ${error.message}\n${output.slice(-2000)}`);
  } finally {
    child.kill("SIGKILL");
    await ended;
  }
}

/** Waits until something answers HTTP. */
async function untilUp(url, child) {
  for (let attempt = 0; attempt < 600; attempt++) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
    const isUp = await fetch(url).then(
      () => true,
      () => false,
    );
    if (isUp) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("it did not come up");
}

/** The same questions to every framework; what is wrong, or undefined. */
async function probe(url, revision) {
  const { status } = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  });
  if (status !== 401) return `a request without a token got ${status}`;
  const events = [];
  const client = await connect(url, {
    revision,
    headers: { authorization: "Bearer ada" },
    handlers: { elicit: async () => ({ action: "accept", content: { sure: true } }) },
  });
  try {
    const textOf = async (name, args) =>
      (await client.callTool(name, args, { onEvent: (event) => events.push(event) })).content[0].text;
    const answers = [
      await textOf("add", { a: 1, b: 2 }),
      await textOf("whoami"),
      await textOf("sure"),
      await textOf("count"),
    ];
    if (answers.join() !== "3,ada,true,done") return `the answers were ${answers.join()}`;
    // Three steps, and the text that a tool yields.
    return events.length === 4 ? undefined : `${events.length} events came`;
  } finally {
    await client.close();
  }
}
