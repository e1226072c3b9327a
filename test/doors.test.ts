import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  findCycle,
  type Import,
  parseImports,
  published,
  readSource,
  readSourceGraph,
  root,
  type SourceGraph,
} from "./source-graph.ts";

// The walls of docs/architecture.md. A package imports the packages below it, by name. In a package, a folder is a room with a door:
// `index.ts` exports what other rooms may use, and only doors are imported from outside.

/** What each package may import of the others. */
const below: Readonly<Record<string, readonly string[]>> = {
  core: [],
  server: ["core"],
  client: ["core"],
  junctor: ["core", "server", "client"],
};

/** The rooms of the gateway. Others in the package (cli, admin, daemon …) reach them through at most ten doors. */
const gatewayRooms = [
  "accounts",
  "bridge",
  "catalog",
  "config",
  "context",
  "credentials",
  "gateway",
  "lock",
  "log",
  "policy",
  "servers",
  "upstream",
];

/** The parts of Node that open no socket, file or process: all that core may use. */
const pureBuiltins = [
  "node:async_hooks",
  "node:buffer",
  "node:crypto",
  "node:stream",
  "node:util",
  "node:vm",
];

const graph = readSourceGraph();

describe("the packages", () => {
  test("import what their manifests name and what lies below them, and core opens nothing", () => {
    expect(findPackageFaults(graph, dependenciesOf)).toEqual([]);
  });

  test("have no import cycle of files", () => {
    expect(findCycle(new Map([...graph].map(([file, all]) => [file, all.map(({ name }) => name)])))).toBe(
      undefined,
    );
  });

  // Whatever waits or expires goes by a clock that does not jump; see `Clock`. Dates of files are compared with the wall clock.
  test("read the wall clock in two files", () => {
    const read = [...graph.keys()].filter((file) => /\bDate\.now\b|\bnew Date\(\)/.test(readSource(file)));
    expect(read).toEqual(["core/src/async/clock.ts", "junctor/src/servers/list-memory.ts"]);
  });
});

describe("the rooms", () => {
  test("are entered through their doors", () => {
    expect(findDoorFaults(graph)).toEqual([]);
  });

  test("have no cycle: of two rooms at most one uses the other", () => {
    expect(findCycle(roomGraph(graph))).toBe(undefined);
  });

  test("of the gateway have at most ten doors that lead out", () => {
    const doors = new Set(
      [...graph].flatMap(([file, imports]) =>
        isOfGateway(file) || !file.startsWith("junctor/")
          ? []
          : imports.map(({ name }) => name).filter((name) => isOfGateway(name)),
      ),
    );
    expect([...doors].toSorted().slice(10)).toEqual([]);
  });
});

describe("the check", () => {
  const faults = (file: string, name: string, isLazy = false): readonly string[] => {
    const tiny: SourceGraph = new Map([
      [file, [{ name, isLazy }]],
      ["core/src/json/index.ts", []],
      ["junctor/src/policy/index.ts", []],
      ["junctor/src/policy/rules.ts", []],
      ["junctor/src/context/search/words.ts", []],
      ["junctor/src/cli/call/call.ts", []],
    ]);
    return [...findPackageFaults(tiny, () => new Set(["pino", "@junctor/core"])), ...findDoorFaults(tiny)];
  };

  test.each([
    ["junctor/src/gateway/gateway.ts", "junctor/src/policy/rules.ts", "through its door"],
    ["junctor/src/cli/check/why.ts", "junctor/src/cli/call/call.ts", "through its door"],
    ["junctor/src/gateway/gateway.ts", "junctor/src/context/search/words.ts", "through its door"],
    ["junctor/src/gateway/gateway.ts", "junctor/src/policy/missing.ts", "no such file"],
    ["server/src/http/node.ts", "core/src/json/index.ts", "by its name"],
    ["server/src/http/node.ts", "@junctor/client", "may not import"],
    ["server/src/http/node.ts", "zod", "dependencies"],
    ["core/src/json/scan.ts", "node:fs", "opens no"],
  ])("refuses %s importing %s", (file, name, reason) => {
    expect(faults(file, name)).toEqual([expect.stringContaining(reason)]);
  });

  test.each([
    ["junctor/src/gateway/gateway.ts", "junctor/src/policy/index.ts"],
    ["junctor/src/policy/explain.ts", "junctor/src/policy/rules.ts"],
    ["junctor/src/context/budget.ts", "junctor/src/context/search/words.ts"],
    ["server/src/http/node.ts", "@junctor/core/json"],
    ["server/src/http/node.ts", "node:http"],
    ["core/src/json/scan.ts", "node:util"],
    ["junctor/src/log/log.ts", "pino"],
  ])("allows %s importing %s", (file, name) => {
    expect(faults(file, name)).toEqual([]);
  });

  test("allows a file to be loaded when it is first needed, past the door", () => {
    expect(faults("junctor/src/gateway/gateway.ts", "junctor/src/policy/rules.ts", true)).toEqual([]);
  });

  test("finds a cycle of any length", () => {
    const cyclic = new Map([
      ["a.ts", ["b.ts"]],
      ["b.ts", ["c.ts", "node:util"]],
      ["c.ts", ["b.ts"]],
    ]);
    expect(findCycle(cyclic)).toEqual(["b.ts", "c.ts", "b.ts"]);
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
    const loaded = (name: string): Import => ({ name, isLazy: false });
    expect(parseImports(code)).toEqual([
      loaded("./effect.ts"),
      loaded("./static.ts"),
      loaded("./type.ts"),
      loaded("./export.ts"),
      loaded("./export-all.ts"),
      loaded("./import-type.ts"),
      { name: "./dynamic.ts", isLazy: true },
    ]);
  });

  test("refuses an import() that cannot be followed", () => {
    expect(() => parseImports("await import(name)")).toThrow("string literal");
  });
});

function findPackageFaults(
  files: SourceGraph,
  dependencies: (name: string) => ReadonlySet<string>,
): readonly string[] {
  return [...files].flatMap(([file, imports]) =>
    imports.flatMap(({ name }) => {
      const fault = packageFault(files, dependencies, file, name);
      return fault === undefined ? [] : [`${file} imports ${name}: ${fault}`];
    }),
  );
}

function packageFault(
  files: SourceGraph,
  dependencies: (name: string) => ReadonlySet<string>,
  file: string,
  name: string,
): string | undefined {
  const own = packageOf(file);
  if (name.startsWith("node:")) {
    if (own !== "core" || pureBuiltins.includes(name)) return undefined;
    return "core opens no socket, file or process. Put what needs one into server, client or junctor";
  }
  if (published.some((each) => name.startsWith(`${each}/src/`))) {
    if (packageOf(name) !== own) return "import another package by its name, as @junctor/core/json";
    return files.has(name) ? undefined : "there is no such file";
  }
  if (name.startsWith("@junctor/")) {
    const [, other = ""] = name.split("/");
    if (below[own]?.includes(other) !== true)
      return `${own} may not import ${other}. Move what both need to core`;
  }
  const dependency = name.split("/", name.startsWith("@") ? 2 : 1).join("/");
  if (dependencies(own).has(dependency)) return undefined;
  return `${dependency} is not in the dependencies of packages/${own}/package.json`;
}

function findDoorFaults(files: SourceGraph): readonly string[] {
  return [...files].flatMap(([file, imports]) =>
    imports.flatMap(({ name, isLazy }) => {
      const isInside = roomOf(name) === roomOf(file) || packageOf(name) !== packageOf(file);
      if (isLazy || !files.has(name) || isInside || name === `${roomOf(name)}/index.ts`) return [];
      const door = `packages/${roomOf(name)}/index.ts`;
      return [
        `${file} imports ${name}: enter the room through its door. Export the name from ${door} and import it there`,
      ];
    }),
  );
}

/** Which rooms each room uses. */
function roomGraph(files: SourceGraph): ReadonlyMap<string, ReadonlySet<string>> {
  const rooms = new Map<string, Set<string>>();
  for (const [file, imports] of files) {
    const used = rooms.get(roomOf(file)) ?? new Set();
    rooms.set(roomOf(file), used);
    for (const { name, isLazy } of imports) {
      if (!isLazy && files.has(name) && roomOf(name) !== roomOf(file)) used.add(roomOf(name));
    }
  }
  return rooms;
}

function packageOf(file: string): string {
  return file.split("/", 1)[0] ?? file;
}

/** `junctor/src/policy` of a file in it, however deep. The rooms of the command line are one deeper. */
function roomOf(file: string): string {
  const [name, src, room, inner, ...rest] = file.split("/");
  if (room === undefined || inner === undefined) return `${name}/${src}`;
  return `${name}/${src}/${room}${room === "cli" && rest.length > 0 ? `/${inner}` : ""}`;
}

function isOfGateway(file: string): boolean {
  return gatewayRooms.some((room) => file.startsWith(`junctor/src/${room}/`));
}

function dependenciesOf(name: string): ReadonlySet<string> {
  const manifest = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8")) as {
    readonly dependencies?: object;
    readonly peerDependencies?: object;
  };
  // What has its own chunk in core's bundle is not a dependency of those who install it.
  const bundled =
    name === "core"
      ? ["ajv", "ajv-formats", "yaml"]
      : name === "server"
        ? ["@cfworker/json-schema", "@noble/ciphers", "@noble/hashes"]
        : [];
  return new Set([...Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }), ...bundled]);
}
