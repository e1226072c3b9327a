// Makes the JavaScript of each package from its source: few files, because Node takes a millisecond to load one, whatever its
// size. What a package imports on demand, such as the client for HTTP, and the commands have files of their own.
//
//   node scripts/bundle.mjs FOLDER     writes FOLDER/core, FOLDER/server, …

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { build } from "rolldown";
import { root } from "./setup.mjs";

const out = process.argv[2];
const sourceOf = (name) => join(root, "packages", name, "src");

const doorsOfCore = readdirSync(sourceOf("core")).filter((room) =>
  existsSync(join(sourceOf("core"), room, "index.ts")),
);
await bundle("core", {
  entries: doorsOfCore.map((room) => `${room}/index.ts`),
  groups: [{ name: "core", test: isOf("core"), tags: ["$initial"] }],
});
assertNamesOfDoors();
await bundle("server", {
  entries: ["index.ts", "fetch.ts", "internal.ts"],
  groups: [
    // Servers on stdio do not load HTTP.
    {
      name: "http",
      test: (id) => isOfHttp(id) && !isSmallOfHttp(id),
      priority: 1,
      includeDependenciesRecursively: false,
    },
    { name: "server", test: isOf("server"), tags: ["$initial"] },
  ],
});
await bundleEdge();
await bundle("client", {
  entries: ["index.ts", "internal.ts", "ai-sdk.ts", "anthropic.ts", "openai.ts"],
  groups: [
    // For programs that call a model; others need not load it.
    { name: "models", test: isOfModels, priority: 1, includeDependenciesRecursively: false },
    { name: "client", test: isOf("client"), tags: ["$initial"] },
  ],
});

/**
 * The server for runtimes without Node: one file with core and all other dependencies, which imports nothing. packages/server/src/edge
 * stands in for what Node provides.
 */
async function bundleEdge() {
  const edge = (file) => join(sourceOf("server"), "edge", file);
  const inPlaceOf = new Map([
    ["node:buffer", "buffer.ts"],
    ["node:crypto", "crypto.ts"],
    [join(sourceOf("core"), "schema/ajv.ts"), "interpreter.ts"],
    [join(sourceOf("server"), "app/transports.ts"), "transports.ts"],
  ]);
  const unused = new Set(inPlaceOf.values());
  const globals = ["process", "setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval"];
  await build({
    cwd: root,
    input: { edge: edge("index.ts") },
    platform: "neutral",
    tsconfig: join(root, "tsconfig.build.json"),
    resolve: { mainFields: ["module", "main"] },
    // Only code that is left out as unused imports them.
    external: (id) => id.startsWith("node:") && !inPlaceOf.has(id),
    transform: {
      target: "es2022",
      inject: {
        ...Object.fromEntries(globals.map((name) => [name, [edge("globals.ts"), name]])),
        Buffer: [edge("buffer.ts"), "Buffer"],
      },
    },
    plugins: [
      {
        name: "edge",
        generateBundle(_, files) {
          if (unused.size > 0) throw new Error(`nothing is replaced by ${[...unused].join(", ")} of edge`);
          for (const { fileName, imports = [] } of Object.values(files)) {
            if (imports.length > 0)
              throw new Error(`${fileName} must import nothing, but imports ${imports.join(", ")}`);
          }
        },
        async resolveId(id, importer, options) {
          const room = /^@junctor\/core\/([\w-]+)$/.exec(id)?.[1];
          const door = room === undefined ? undefined : join(sourceOf("core"), room, "index.ts");
          const path = door ?? (id.startsWith(".") ? join(importer, "..", id) : id);
          const replacement = inPlaceOf.get(path);
          if (replacement !== undefined) {
            unused.delete(replacement);
            return edge(replacement);
          }
          if (options.kind === "dynamic-import") return edge("absent.ts");
          if (door !== undefined) return this.resolve(door, importer, options);
          return undefined;
        },
      },
    ],
    onLog: (level, { message }) => {
      if (level === "warn") throw new Error(message);
    },
    output: {
      dir: join(out, "server"),
      format: "esm",
      comments: false,
      minify: true,
      entryFileNames: "edge.js",
      codeSplitting: false,
    },
  });
}

function isOfModels(id) {
  return id.startsWith(join(sourceOf("client"), "models", sep));
}

function isOfHttp(id) {
  return id.startsWith(join(sourceOf("server"), "http", sep));
}

/** The small files of HTTP that the entry of the server imports; they are bundled with it. */
function isSmallOfHttp(id) {
  return isOfHttp(id) && /[/\\](authenticate|event-store|listen-http)\.ts$/.test(id);
}

const source = sourceOf("junctor");
const entries = ["index.ts", "testing/index.ts", "cli/main.ts"];
const isEntry = (id) => entries.some((file) => id === join(source, file));
const isOfCli = (id) => id.startsWith(join(source, "cli", sep));
const ofFront = ["cli/running/attach.ts", "cli/terminal/commands.ts", "cli/version.ts"].map((file) =>
  join(source, file),
);
const isOfFront = (id) =>
  ["attach", "invocation"].some((room) => id.startsWith(join(source, room, sep))) || ofFront.includes(id);
/** The helper that `using` is compiled to, because Node 20 does not know `using`. */
const isHelper = (id) => id.startsWith("\0");
await bundle("junctor", {
  entries,
  // All one folder deep, as the entries are: the program builds paths relative to its own file.
  chunkFileNames: ({ isDynamicEntry, moduleIds }) =>
    isDynamicEntry && moduleIds.some(isOfCli) ? "cli/[name].js" : "chunks/[name].js",
  groups: [
    // What `junctor attach` needs, and nothing else: a client waits for it.
    { name: "front", test: isOfFront, priority: 3 },
    { name: "gateway", test: (id) => !isEntry(id) && !isOfCli(id) && !isOfFront(id), tags: ["$initial"] },
    // Without the entry of the program: it awaits the command, so a command that imported it would wait forever.
    { name: "commands", test: (id) => !isEntry(id) && (isOfCli(id) || isHelper(id)), minShareCount: 2 },
  ],
});

/** Throws if a door of core exports a name that the one file of core does not. */
function assertNamesOfDoors() {
  for (const room of doorsOfCore) {
    const code = readFileSync(join(out, "core", room, "index.js"), "utf8");
    if (!/^export\{[\w$,]*\}from"\.\.\/chunks\/core\.js";$/.test(code.trim()))
      throw new Error(
        `the door ${room} of core exports a name that another door has, or what is loaded later:\n${code}`,
      );
  }
}

/** A test for files of a package. */
function isOf(name) {
  const folder = join(sourceOf(name), sep);
  return (id) => id.startsWith(folder);
}

async function bundle(name, { entries, groups, chunkFileNames = "chunks/[name].js" }) {
  const { dependencies, peerDependencies } = JSON.parse(
    readFileSync(join(root, "packages", name, "package.json"), "utf8"),
  );
  await build({
    cwd: root,
    // Needed for `includeDependenciesRecursively: false`; no entry exports further names because of it.
    preserveEntrySignatures: "allow-extension",
    input: Object.fromEntries(entries.map((file) => [file.replace(".ts", ""), join(sourceOf(name), file)])),
    platform: "node",
    tsconfig: join(root, "tsconfig.build.json"),
    transform: { target: "es2023" },
    external: [
      /^node:/,
      ...Object.keys({ ...dependencies, ...peerDependencies }).map((other) => new RegExp(`^${other}(/|$)`)),
    ],
    onLog: (level, { message }) => {
      if (level === "warn") throw new Error(message);
    },
    output: {
      dir: join(out, name),
      format: "esm",
      minifyInternalExports: false,
      // Node reads all of it at every start. The comments are in the source, and those for users in the types.
      comments: false,
      // Names stay readable in stacks; local variables need not.
      minify: { compress: { keepNames: { function: true, class: true } }, mangle: { toplevel: false } },
      // The one file of core exports the names of all doors: each door would be one more file to load.
      paths: (id) => (id.startsWith("@junctor/core/") ? "@junctor/core/bundle" : id),
      entryFileNames: "[name].js",
      chunkFileNames,
      codeSplitting: { groups },
    },
  });
}
