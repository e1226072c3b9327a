import { existsSync, readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAst } from "vitest/node";

/** Absolute path of the repository. */
export const root: string = fileURLToPath(new URL("..", import.meta.url));

/** What each file imports. Keys and relative imports are paths from `src/`; the rest is as written. */
export type SourceGraph = ReadonlyMap<string, readonly string[]>;

/** Reads every shipped file of `src/`: tests may import what they like, so they are left out. */
export function readSourceGraph(): SourceGraph {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .toSorted();
  return new Map(
    files.map((file) => [file, parseImports(readSource(file)).map((name) => resolveImport(file, name))]),
  );
}

/** The text of a file of `src/`. */
export function readSource(file: string): string {
  return readFileSync(join(root, "src", file), "utf8");
}

/** Whether `src/` has this file. */
export function hasSource(file: string): boolean {
  return existsSync(join(root, "src", file));
}

/** Every module named in the text: static, dynamic and type-only imports, and re-exports. */
export function parseImports(code: string): readonly string[] {
  const names: string[] = [];
  visit(parse(code), (node) => {
    if (importingTypes.has(node.type) && isNode(node.source) && typeof node.source.value === "string") {
      names.push(node.source.value);
    } else if (node.type === "ImportExpression" && !isForeign(code, node)) {
      throw new Error("import() must be given a string literal, so that the layers can be checked");
    }
  });
  return names;
}

/** Whether an import() says that it loads what is not ours: a module of the user. */
function isForeign(code: string, node: object): boolean {
  return code
    .slice(0, Number((node as { readonly start?: number }).start))
    .trimEnd()
    .endsWith("/* the user's */");
}

/** Every name the text exports, types included. `export *` is refused: public names are listed by hand. */
export function parseExports(code: string): readonly string[] {
  const names: string[] = [];
  visit(parse(code), (node) => {
    if (node.type === "ExportAllDeclaration")
      throw new Error("export * hides what is public: list the names");
    if (node.type === "ExportDefaultDeclaration") names.push("default");
    if (node.type === "ExportSpecifier" && isNode(node.exported)) names.push(String(node.exported.name));
    if (node.type === "ExportNamedDeclaration" && isNode(node.declaration)) {
      throw new Error("an entry point only re-exports: move the declaration to its own file");
    }
  });
  return names.toSorted();
}

/** The first import cycle as a closed path, or undefined. */
export function findCycle(graph: SourceGraph): readonly string[] | undefined {
  const done = new Set<string>();
  const path: string[] = [];
  const walk = (file: string): readonly string[] | undefined => {
    if (done.has(file)) return undefined;
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    path.push(file);
    for (const next of graph.get(file) ?? []) {
      const cycle = walk(next);
      if (cycle) return cycle;
    }
    path.pop();
    done.add(file);
    return undefined;
  };
  for (const file of graph.keys()) {
    const cycle = walk(file);
    if (cycle) return cycle;
  }
  return undefined;
}

function resolveImport(from: string, name: string): string {
  if (name.startsWith(".")) return posix.join(dirname(from), name);
  return isBuiltin(name) && !name.startsWith("node:") ? `node:${name}` : name;
}

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

const importingTypes = new Set([
  "ImportDeclaration",
  "ImportExpression",
  "ExportNamedDeclaration",
  "ExportAllDeclaration",
  "TSImportType",
]);

function parse(code: string): unknown {
  return parseAst(code, { lang: "ts", sourceType: "module" });
}

function visit(value: unknown, see: (node: Node) => void): void {
  if (Array.isArray(value)) {
    for (const item of value) visit(item, see);
  } else if (typeof value === "object" && value !== null) {
    if (isNode(value)) see(value);
    for (const child of Object.values(value)) visit(child, see);
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}
