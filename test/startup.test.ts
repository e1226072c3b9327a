import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./source-graph.ts";
import { modernCall } from "./support/http-wire.ts";

// A server on stdio is started once for each conversation, so what it loads is waited for every time.
test("importing the library loads none of its dependencies", () => {
  const url = JSON.stringify(join(root, "packages/junctor/dist/index.js"));
  const code = `
    import { createRequire } from "node:module";
    await import(${url});
    console.log(JSON.stringify(Object.keys(createRequire(${url}).cache)));`;
  const said = execFileSync(process.execPath, ["--input-type=module", "--eval", code], { encoding: "utf8" });
  expect(JSON.parse(said)).toEqual([]);
});

test("a server on stdio that answers a call loads neither the cryptography of Node nor HTTP", () => {
  const url = JSON.stringify(join(root, "packages/server/dist/index.js"));
  const code = `
    const { createRegistry, createServer, serveStdio } = await import(${url});
    const registry = createRegistry();
    registry.register("add", { input: { type: "object" } }, () => "3");
    process.on("exit", () => console.error(JSON.stringify(process.moduleLoadList)));
    await serveStdio(createServer(registry, { name: "calc", version: "1.0.0" }));`;
  const call = { jsonrpc: "2.0", id: 1, ...modernCall("add") };
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", code], {
    encoding: "utf8",
    input: `${JSON.stringify(call)}\n`,
  });
  expect(stdout).toContain('"text":"3"');
  const loaded = JSON.parse(stderr) as readonly string[];
  expect(loaded).toContain("NativeModule net"); // The standard streams are sockets.
  const unwanted = ["crypto", "http", "https", "tls", "perf_hooks", "worker_threads", "child_process"];
  expect(unwanted.filter((name) => loaded.includes(`NativeModule ${name}`))).toEqual([]);
});
