import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { root } from "../setup.mjs";
import { listSource, parse, readSource, visit } from "../source.mjs";

const typeDeclarations = new Set(["TSInterfaceDeclaration", "TSTypeAliasDeclaration", "ClassDeclaration"]);

/** The measures that follow from the text of src. Each has a name, what it counts, its goal, and the places. */
export function measureSource() {
  const files = listSource().map((path) => {
    const code = readSource(path);
    return { path, code, lines: countLines(code), nodes: listNodes(parse(code)) };
  });
  const { importers, unused, testOnly } = readImports(files);
  const members = classMembers(files);
  return [
    row("engines", "composition engines", 1, engines(files)),
    row("questions", "files that look inside a question", 4, questionFiles(files)),
    row("duplicates", "type names declared more than once", 0, duplicateTypes(files)),
    row("parameters", "functions with 5 or more positional parameters", 0, longParameterLists(files)),
    row("classes15", "classes with more than 15 members", 5, atLeast(members, 16)),
    row("classes12", "classes with more than 12 members", undefined, atLeast(members, 13)),
    row("crumbs", "files under 25 lines with one importer", 0, crumbs(files, importers)),
    row("long", "files over 300 lines", 0, longer(files, 300)),
    row("longTests", "test files over 500 lines", 0, longer(listTests(), 500)),
    row("unused", "exports that no other file imports", 0, unused),
    row("testOnly", "exports that only tests import", undefined, testOnly),
    { name: "files", title: "files of src without tests", value: files.length, places: [] },
    {
      name: "lines",
      title: "lines of src without tests",
      value: files.reduce((sum, { lines }) => sum + lines, 0),
      goal: 27_787,
      places: folderSizes(files),
    },
  ];
}

function row(name, title, goal, places) {
  return { name, title, value: places.length, goal, places };
}

function countLines(code) {
  return code.split("\n").length - 1;
}

function listNodes(program) {
  const nodes = [];
  visit(program, (node, parents) => nodes.push({ node, parents }));
  return nodes;
}

function lineOf(code, node) {
  return code.slice(0, node.start).split("\n").length;
}

/** An engine makes one list of several providers' lists: the top folders that declare who owns a name in it. */
const ownerTypes = new Set(["Owner", "Claim"]);

function engines(files) {
  const folders = new Map();
  for (const { path, nodes } of files) {
    const names = nodes
      .filter(({ node }) => typeDeclarations.has(node.type) && ownerTypes.has(node.id?.name))
      .map(({ node }) => `${node.id.name} in ${path}`);
    const folder = path.split("/", 1)[0];
    if (names.length > 0) folders.set(folder, [...(folders.get(folder) ?? []), ...names]);
  }
  return [...folders.values()].map((names) => names.join(", "));
}

/**
 * A file looks inside a question when its code, not only its types, names a kind of question or the error that stands
 * for one. A file that only passes an `Ask` on does not.
 */
const questionKinds = new Set(["elicitation/create", "sampling/createMessage", "roots/list"]);

function questionFiles(files) {
  return files.flatMap(({ path, nodes }) => {
    const names = nodes.flatMap(({ node, parents }) => {
      if (node.type === "Identifier" && node.name === "urlElicitationRequired") return [node.name];
      const isKind = node.type === "Literal" && questionKinds.has(node.value);
      return isKind && parents.at(-1).type !== "TSLiteralType" ? [node.value] : [];
    });
    return names.length > 0 ? [`${path} (${[...new Set(names)].join(", ")})`] : [];
  });
}

function duplicateTypes(files) {
  const places = new Map();
  for (const { path, nodes } of files) {
    // A class and an interface of one name in one file are one declaration in two parts.
    const declared = nodes.filter(({ node }) => typeDeclarations.has(node.type) && node.id);
    for (const name of new Set(declared.map(({ node }) => node.id.name)))
      places.set(name, [...(places.get(name) ?? []), path]);
  }
  return [...places]
    .filter(([, paths]) => paths.length > 1)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, paths]) => `${name}: ${paths.join(", ")}`);
}

function longParameterLists(files) {
  return files.flatMap(({ path, code, nodes }) =>
    nodes
      .filter(({ node }) => node.type !== "TSIndexSignature" && parametersOf(node).length > 4)
      .map(
        ({ node, parents }) =>
          `${path}:${lineOf(code, node)} ${nameOf(node, parents)} (${parametersOf(node).length})`,
      ),
  );
}

/** Of a function, a method or a type of one. */
function parametersOf({ params, parameters }) {
  const list = params ?? parameters;
  return Array.isArray(list)
    ? list.filter((one) => one.name !== "this" && one.type !== "TSTypeParameter")
    : [];
}

function nameOf(node, parents) {
  const owners = [node, ...parents.toReversed()];
  return owners.map((owner) => owner.id?.name ?? owner.key?.name).find(Boolean) ?? "a function";
}

function classMembers(files) {
  return files
    .flatMap(({ path, code, nodes }) =>
      nodes
        .filter(({ node }) => node.type === "ClassDeclaration" || node.type === "ClassExpression")
        .map(({ node }) => ({
          place: `${path}:${lineOf(code, node)} ${node.id?.name ?? "a class"}`,
          count: node.body.body.filter(({ value }) => value?.type !== "TSEmptyBodyFunctionExpression").length,
        })),
    )
    .toSorted((a, b) => b.count - a.count);
}

function atLeast(classes, count) {
  return classes.filter((one) => one.count >= count).map((one) => `${one.place} (${one.count})`);
}

function crumbs(files, importers) {
  return files
    .filter(({ path, lines }) => lines < 25 && importers.get(path)?.size === 1)
    .map(({ path, lines }) => `${path} (${lines} lines) belongs to ${[...importers.get(path)][0]}`);
}

function longer(files, limit) {
  return files.filter(({ lines }) => lines > limit).map(({ path, lines }) => `${path} (${lines} lines)`);
}

function listTests() {
  return ["src", "test"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => (folder === "src" ? file.endsWith(".test.ts") : /\.(ts|mjs)$/.test(file)))
      .map((file) => ({
        path: `${folder}/${file.replaceAll("\\", "/")}`,
        lines: countLines(readFileSync(join(root, folder, file), "utf8")),
      })),
  );
}

function folderSizes(files) {
  const sizes = new Map();
  for (const { path, lines } of files) {
    const folder = dirname(path);
    const { count, total } = sizes.get(folder) ?? { count: 0, total: 0 };
    sizes.set(folder, { count: count + 1, total: total + lines });
  }
  return [...sizes]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([folder, { count, total }]) => `${folder}: ${count} files, ${total} lines`);
}

/** Entry points export for others than us. */
const entryPoints = new Set(["index.ts", "testing/index.ts", "cli/main.ts"]);

function readImports(files) {
  const importers = new Map(files.map(({ path }) => [path, new Set()]));
  const bySource = new Set();
  for (const file of files) {
    for (const { target, names } of importsOf(file.path, file.nodes)) {
      importers.get(target)?.add(file.path);
      for (const name of names) bySource.add(`${target} ${name}`);
    }
  }
  const byTests = new Set();
  for (const { path } of listTests().filter(({ path }) => path.endsWith(".ts"))) {
    const nodes = listNodes(parse(readFileSync(join(root, path), "utf8")));
    for (const { target, names } of importsOf(`../${path}`, nodes)) {
      const inSource = target.replace(/^\.\.\/src\//, "");
      for (const name of names) byTests.add(`${inSource} ${name}`);
    }
  }
  const isIn = (uses, path, name) => uses.has(`${path} ${name}`) || uses.has(`${path} *`);
  const exported = files
    .filter(({ path }) => !entryPoints.has(path))
    .flatMap(({ path, nodes }) => exportsOf(nodes).map((name) => ({ path, name })))
    .filter(({ path, name }) => !isIn(bySource, path, name));
  const toPlace = ({ path, name }) => `${path} ${name}`;
  return {
    importers,
    unused: exported.filter(({ path, name }) => !isIn(byTests, path, name)).map(toPlace),
    testOnly: exported.filter(({ path, name }) => isIn(byTests, path, name)).map(toPlace),
  };
}

/** What a file takes from which other one; `*` is everything. */
function importsOf(path, nodes) {
  return nodes.flatMap(({ node }) => {
    const name = node.source?.value;
    if (typeof name !== "string" || !name.startsWith(".")) return [];
    const target = posix.join(dirname(path), name);
    const specifiers = node.specifiers ?? [{ type: "all" }];
    const names = specifiers.map(({ imported, local, type }) => {
      if (type === "ExportSpecifier") return local.name;
      return type === "ImportSpecifier" ? (imported.name ?? imported.value) : "*";
    });
    return [{ target, names }];
  });
}

function exportsOf(nodes) {
  return nodes
    .filter(({ node }) => node.type === "ExportNamedDeclaration")
    .flatMap(({ node: { declaration, specifiers } }) => {
      if (!declaration) return specifiers.map(({ exported }) => exported.name);
      return declaration.declarations?.map(({ id }) => id.name) ?? [declaration.id.name];
    });
}
