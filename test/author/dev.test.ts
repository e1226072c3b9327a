import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { connect, textOf } from "../../packages/client/src/index.ts";
import { root } from "../source-graph.ts";
import { bin, junctor } from "../support/junctor-bin.ts";
import { until } from "../support/until.ts";

const project = mkdtempSync(join(tmpdir(), "junctor-dev-"));
mkdirSync(join(project, "node_modules"));
symlinkSync(join(root, "packages/junctor"), join(project, "node_modules/junctor"), "junction");
symlinkSync(join(root, "node_modules/@junctor"), join(project, "node_modules/@junctor"), "junction");
afterAll(() => rmSync(project, { recursive: true, force: true }));

const file = join(project, "server.mjs");
const write = (version: number, more = ""): void =>
  writeFileSync(
    file,
    `import { createRegistry, createServer, elicit, inputRequired, serveStdio } from "junctor";
const registry = createRegistry();
registry.register("version", {}, () => "${version}");
registry.register("slow", {}, async (_, { signal }) => {
  for (let n = 0; n < 20 && !signal.aborted; n++) await new Promise((resolve) => setTimeout(resolve, 10));
  return "slow ${version}";
});
registry.register("ask", {}, (_, { answers }) =>
  answers.elicited("name") ? "${version} was answered" : inputRequired({ name: elicit("Who?", { name: { type: "string" } }) }));
${more}
await serveStdio(createServer(registry, { name: "written", version: "1.0.0" }));
`,
  );

interface Dev extends AsyncDisposable {
  readonly url: string;
  readonly said: () => string;
}

async function startDev(args: readonly string[]): Promise<Dev> {
  const child: ChildProcess = spawn(process.execPath, [bin, "dev", "--port", "0", ...args], { cwd: project });
  const exited = once(child, "exit");
  let said = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => void (said += text));
  const [url] = (await once(child.stdout?.setEncoding("utf8") ?? child, "data")) as [string];
  await until(() => said.includes("Ctrl-C ends it"));
  return {
    url: url.trim(),
    said: () => said,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      expect(await exited).toEqual([0, null]);
    },
  };
}

test("no call and no session is lost while a program is edited", { timeout: 180_000 }, async () => {
  write(0);
  await using dev = await startDev(["server.mjs"]);
  await using modern = await connect(dev.url, { revision: "2026-07-28" });
  await using legacy = await connect(dev.url, { revision: "2025-11-25" });
  let calls = 0;
  const over = new AbortController();
  const keepCalling = async (client: typeof modern, tool: string): Promise<void> => {
    while (!over.signal.aborted) {
      const { isError = false, content } = await client.callTool(tool);
      expect([isError, textOf({ content })]).toEqual([false, expect.stringMatching(/^(?:slow )?\d+$/)]);
      calls++;
    }
  };
  const load = [
    keepCalling(modern, "slow"),
    keepCalling(legacy, "slow"),
    keepCalling(modern, "version"),
    keepCalling(legacy, "version"),
  ];
  for (let version = 1; version <= 20; version++) {
    write(version);
    await until(() => dev.said().split("reloaded in").length > version);
    expect(textOf(await legacy.callTool("version"))).toBe(String(version));
  }
  await until(() => calls > 1000);
  over.abort();
  await Promise.all(load);
});

test("a version that does not start changes nothing, and is reported once", { timeout: 60_000 }, async () => {
  write(1);
  await using dev = await startDev(["server.mjs"]);
  await using client = await connect(dev.url);
  write(2, "this is no JavaScript");
  await until(() => dev.said().includes("not reloaded"));
  expect(textOf(await client.callTool("version"))).toBe("1");
  expect(dev.said().split("not reloaded")).toHaveLength(2);
  expect(dev.said()).toContain("SyntaxError");
  write(3, 'registry.register("more", {}, () => "more");');
  await until(() => dev.said().includes("reloaded in"));
  expect(textOf(await client.callTool("version"))).toBe("3");
  expect((await client.listTools()).map(({ name }) => name)).toContain("more");
});

test(
  "an app that a file exports is served, without a transport in the file",
  { timeout: 60_000 },
  async () => {
    const app = join(project, "app.mjs");
    const writeApp = (answer: string): void =>
      writeFileSync(
        app,
        `import { createApp } from "junctor";
export default createApp({ name: "app", version: "1.0.0" }).tool("say", {}, () => "${answer}");`,
      );
    writeApp("one");
    await using dev = await startDev(["app.mjs"]);
    await using client = await connect(dev.url);
    expect(textOf(await client.callTool("say"))).toBe("one");
    writeApp("two");
    await until(() => dev.said().includes("reloaded in"));
    expect(textOf(await client.callTool("say"))).toBe("two");
  },
);

test("an answer goes to the version that asked", { timeout: 60_000 }, async () => {
  write(1);
  await using dev = await startDev(["--", process.execPath, "server.mjs"]);
  const elicit = async (): Promise<{ readonly action: "accept"; readonly content: object }> => {
    write(2);
    await until(() => dev.said().includes("reloaded in"));
    return { action: "accept", content: { name: "Ada" } };
  };
  await using client = await connect(dev.url, { handlers: { elicit: elicit as never } });
  expect(textOf(await client.callTool("ask"))).toBe("1 was answered");
  expect(textOf(await client.callTool("version"))).toBe("2");
});

test.each([
  [["dev"], "name a program"],
  [["dev", "nothing.mjs"], "there is no file nothing.mjs"],
  [["dev", "server.mjs", "--watch", "nowhere"], "--watch: there is no folder nowhere"],
  [["dev", "server.mjs", "--", "node"], "name the program once"],
])("%j is one message", async (args, message) => {
  write(1);
  const { code, stdout, stderr } = await junctor(args, { cwd: project });
  expect({ code, stdout, said: stderr.includes(message) }).toEqual({ code: 2, stdout: "", said: true });
});
