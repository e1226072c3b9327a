import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  findCycle,
  parseImports,
  readSource,
  readSourceGraph,
  root,
  type SourceGraph,
} from "./source-graph.ts";

// The layer table of docs/architecture.md: each folder of src/ and the folders it may import.
const base = ["errors", "options", "async"];
const belowTools = [...base, "json", "jsonrpc", "mcp"];
const belowGateway = [
  ...belowTools,
  "schema",
  "tools",
  "skills",
  "audit",
  "middleware",
  "surface",
  "server",
  "client",
  "auth",
  "transports",
  "cluster",
];
const layers: Readonly<Record<string, readonly string[]>> = {
  errors: [],
  options: [],
  async: ["errors"],
  json: base,
  jsonrpc: [...base, "json"],
  mcp: [...base, "json", "jsonrpc"],
  schema: belowTools,
  tools: [...belowTools, "schema"],
  auth: belowTools,
  transports: [...belowTools, "auth"],
  skills: [...belowTools, "schema", "tools"],
  audit: [...belowTools, "schema", "tools"],
  middleware: [...belowTools, "schema", "tools", "audit"],
  surface: [...belowTools, "schema", "tools", "audit", "middleware"],
  telemetry: [...belowTools, "schema", "tools", "audit"],
  server: [...belowTools, "schema", "tools"],
  client: [...belowTools, "schema", "tools", "skills", "audit", "auth", "transports"],
  cluster: [...belowTools, "schema", "tools", "skills", "audit", "server", "client", "auth", "transports"],
  gateway: belowGateway,
  front: [],
  admin: [...belowGateway, "gateway", "telemetry"],
  daemon: [...belowGateway, "gateway", "front"],
  install: [...belowGateway, "gateway", "front"],
  testing: [...belowGateway, "gateway"],
  cli: [...belowGateway, "gateway", "telemetry", "admin", "front", "daemon", "install", "testing"],
  "index.ts": [...belowGateway, "gateway"],
};

// Folders that open no socket, file or process, and the parts of Node that cannot open one either.
const pureLayers = ["errors", "options", "async", "json", "jsonrpc", "mcp", "schema", "tools"];
const pureBuiltins = ["node:async_hooks", "node:buffer", "node:crypto", "node:util", "node:vm"];

describe("the layer table holds for src/", () => {
  const graph = readSourceGraph();

  test("every import is allowed", () => {
    expect(findViolations(graph, runtimeDependencies())).toEqual([]);
  });

  test("there are no import cycles", () => {
    expect(findCycle(graph)).toBeUndefined();
  });

  test("every file is in a folder of the table", () => {
    expect([...graph.keys()].filter((file) => layers[layerOf(file)] === undefined)).toEqual([]);
  });
});

// Whatever waits or expires goes by a clock that does not jump; see `Clock`. Dates of files are compared with the wall clock.
test("the wall clock is read in two files", () => {
  const read = [...readSourceGraph().keys()].filter((file) =>
    /\bDate\.now\b|\bnew Date\(\)/.test(readSource(file)),
  );
  expect(read).toEqual(["async/clock.ts", "gateway/list-memory.ts"]);
});

describe("the table itself", () => {
  test("tools and transports do not know each other", () => {
    expect(layers.tools).not.toContain("transports");
    expect(layers.transports).not.toContain("tools");
  });

  test("has no cycle between folders", () => {
    expect(findCycle(new Map(Object.entries(layers)))).toBeUndefined();
  });
});

describe("the check", () => {
  const check = (file: string, imported: string): readonly string[] =>
    findViolations(
      new Map([
        [file, [imported]],
        ["tools/tool.ts", []],
        ["transports/tcp.ts", []],
        ["gateway/gateway.ts", []],
        ["errors/rpc-error.ts", []],
      ]),
      new Set(["ajv", "@scope/dependency"]),
    );

  test.each([
    ["tools/registry.ts", "transports/tcp.ts"],
    ["transports/stdio.ts", "tools/tool.ts"],
    ["server/server.ts", "gateway/gateway.ts"],
    ["async/queue.ts", "tools/tool.ts"],
    ["index.ts", "cli/main.ts"],
    ["json/scan.ts", "node:fs"],
    ["tools/registry.ts", "node:net"],
    ["mcp/era.ts", "node:child_process"],
    ["schema/schema.ts", "zod"],
    ["schema/schema.ts", "@scope/other/deep.js"],
    ["tools/registry.ts", "tools/missing.ts"],
    ["tools/registry.ts", "tools/tool.js"],
  ])("refuses %s importing %s", (file, imported) => {
    expect(check(file, imported)).toHaveLength(1);
  });

  test.each([
    ["tools/registry.ts", "tools/tool.ts"],
    ["json/scan.ts", "errors/rpc-error.ts"],
    ["client/connect.ts", "transports/tcp.ts"],
    ["gateway/upstream.ts", "tools/tool.ts"],
    ["tools/seal.ts", "node:crypto"],
    ["transports/stdio.ts", "node:child_process"],
    ["schema/schema.ts", "ajv/dist/2020.js"],
    ["schema/schema.ts", "@scope/dependency/deep.js"],
  ])("allows %s importing %s", (file, imported) => {
    expect(check(file, imported)).toEqual([]);
  });

  test("finds a cycle of any length", () => {
    const graph = new Map([
      ["a.ts", ["b.ts"]],
      ["b.ts", ["c.ts", "node:util"]],
      ["c.ts", ["b.ts"]],
    ]);
    expect(findCycle(graph)).toEqual(["b.ts", "c.ts", "b.ts"]);
  });

  test("sees every form of import, and none in comments or strings", () => {
    const code = `
      import "./effect.ts";
      import { a } from "./static.ts";
      import type { B } from "./type.ts";
      export { c } from "./export.ts";
      export type * from "./export-all.ts";
      type D = import("./import-type.ts").D;
      const e = await import("./dynamic.ts");
      // import "./comment.ts";
      const f = 'import "./string.ts"';
    `;
    expect(parseImports(code)).toEqual([
      "./effect.ts",
      "./static.ts",
      "./type.ts",
      "./export.ts",
      "./export-all.ts",
      "./import-type.ts",
      "./dynamic.ts",
    ]);
  });

  test("refuses an import() that cannot be followed", () => {
    expect(() => parseImports("await import(name)")).toThrow("string literal");
  });
});

function findViolations(graph: SourceGraph, dependencies: ReadonlySet<string>): readonly string[] {
  const violations: string[] = [];
  for (const [file, imports] of graph) {
    for (const imported of imports) {
      const reason = objection(graph, dependencies, file, imported);
      if (reason !== undefined) violations.push(`${file} imports ${imported}: ${reason}`);
    }
  }
  return violations;
}

function objection(
  graph: SourceGraph,
  dependencies: ReadonlySet<string>,
  file: string,
  imported: string,
): string | undefined {
  const layer = layerOf(file);
  if (imported.startsWith("node:")) {
    const isFine = !pureLayers.includes(layer) || pureBuiltins.includes(imported);
    return isFine ? undefined : `${layer} may import only ${pureBuiltins.join(", ")} of Node`;
  }
  if (/\.[a-z]+$/.test(imported) && layers[layerOf(imported)] !== undefined) {
    const target = layerOf(imported);
    if (layer !== target && !layers[layer]?.includes(target)) return `${layer} may not import ${target}`;
    return graph.has(imported) ? undefined : "there is no such file";
  }
  const name = imported.split("/", imported.startsWith("@") ? 2 : 1).join("/");
  return dependencies.has(name) ? undefined : `${name} is not in the dependencies of package.json`;
}

function layerOf(file: string): string {
  return file.split("/", 1)[0] ?? file;
}

function runtimeDependencies(): ReadonlySet<string> {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
    peerDependencies: Record<string, string>;
  };
  return new Set(Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }));
}
