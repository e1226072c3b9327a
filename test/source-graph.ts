import { readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAst } from "vitest/node";

/** Absolute path of the repository. */
export const root: string = fileURLToPath(new URL("..", import.meta.url));

/** One import of a file: what it names, as a path from `packages/` if it is relative, and whether it is loaded when first needed. */
export interface Import {
  readonly name: string;
  readonly isLazy: boolean;
}

/** What each shipped file of the packages imports. Keys are paths from `packages/`. */
export type SourceGraph = ReadonlyMap<string, readonly Import[]>;

/** The packages that are published, the lowest first. */
export const published = ["core", "server", "client", "junctor"] as const;

/** Reads every shipped file of the published packages: tests may import what they like, so they are left out. */
export function readSourceGraph(): SourceGraph {
  const files = published.flatMap((name) =>
    readdirSync(join(root, "packages", name, "src"), { recursive: true, encoding: "utf8" })
      .map((file) => `${name}/src/${file.replaceAll("\\", "/")}`)
      .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
      .toSorted(),
  );
  return new Map(
    files.map((file) => [
      file,
      parseImports(readSource(file)).map(({ name, isLazy }) => ({ name: resolveImport(file, name), isLazy })),
    ]),
  );
}

/** The text of a file of `packages/`. */
export function readSource(file: string): string {
  return readFileSync(join(root, "packages", file), "utf8");
}

/** Every module named in the text: static, dynamic and type-only imports, and re-exports. */
export function parseImports(code: string): readonly Import[] {
  const imports: Import[] = [];
  visit(parse(code), (node) => {
    if (importingTypes.has(node.type) && isNode(node.source) && typeof node.source.value === "string") {
      imports.push({ name: node.source.value, isLazy: node.type === "ImportExpression" });
    } else if (node.type === "ImportExpression" && !isForeign(code, node)) {
      throw new Error("import() must be given a string literal, so that the doors can be checked");
    }
  });
  return imports;
}

/** Whether an import() says that it loads what is not ours: a module of the user. */
function isForeign(code: string, node: object): boolean {
  return code
    .slice(0, Number((node as { readonly start?: number }).start))
    .trimEnd()
    .endsWith("/* the user's */");
}

/** Every name the text exports, types included. */
export function parseExports(code: string): readonly string[] {
  const names: string[] = [];
  visit(parse(code), (node) => {
    if (node.type === "ExportAllDeclaration") {
      throw new Error("export * hides what is public: list the names");
    }
    if (node.type === "ExportDefaultDeclaration") names.push("default");
    if (node.type === "ExportSpecifier" && isNode(node.exported)) names.push(String(node.exported.name));
    if (node.type === "ExportNamedDeclaration" && isNode(node.declaration)) {
      throw new Error("an entry point only re-exports: move the declaration to its own file");
    }
  });
  return names.toSorted();
}

/** The first cycle as a closed path, or undefined. */
export function findCycle(graph: ReadonlyMap<string, Iterable<string>>): readonly string[] | undefined {
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
