// Makes the JavaScript of dist from src: few files, because Node takes a millisecond to load one, whatever its size. The
// library is one; what it imports on demand, such as the client for HTTP, and the commands have files of their own.
//
//   node scripts/bundle.mjs FOLDER

import { readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { build } from "rolldown";
import { root } from "./setup.mjs";

const source = join(root, "src");
const entries = ["index.ts", "testing/index.ts", "cli/main.ts"];
const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

await build({
  cwd: root,
  input: Object.fromEntries(entries.map((file) => [file.replace(".ts", ""), join(source, file)])),
  platform: "node",
  tsconfig: join(root, "tsconfig.build.json"),
  transform: { target: "es2023" },
  external: [
    /^node:/,
    ...Object.keys({ ...dependencies, ...peerDependencies }).map((name) => new RegExp(`^${name}(/|$)`)),
  ],
  onLog: (level, { message }) => {
    if (level === "warn") throw new Error(message);
  },
  output: {
    dir: process.argv[2],
    format: "esm",
    sourcemap: true,
    sourcemapExcludeSources: true, // They are in the package.
    minifyInternalExports: false,
    // Node reads all of it at every start. The comments are in src, and those for users in the types.
    comments: false,
    entryFileNames: "[name].js",
    // All one folder deep, as the files of src are: packages/junctor/src/cli/version.ts counts on it.
    chunkFileNames: ({ isDynamicEntry, moduleIds }) =>
      isDynamicEntry && moduleIds.some(isOfCli) ? "cli/[name].js" : "chunks/[name].js",
    codeSplitting: {
      groups: [
        // What `junctor attach` needs, and nothing else: a client waits for it.
        { name: "front", test: (id) => isOfFront(id), priority: 3 },
        { name: "library", test: (id) => !isEntry(id) && !isOfCli(id) && !isOfFront(id), tags: ["$initial"] },
        // Without the program itself: a command that imported it would wait for what waits for the command.
        { name: "commands", test: (id) => !isEntry(id) && (isOfCli(id) || isHelper(id)), minShareCount: 2 },
      ],
    },
  },
});

function isEntry(id) {
  return entries.some((file) => id === join(source, file));
}

function isOfFront(id) {
  const files = ["cli/attach.ts", "cli/version.ts"].map((file) => join(source, file));
  return id.startsWith(join(source, "front", sep)) || files.includes(id);
}

function isOfCli(id) {
  return id.startsWith(join(source, "cli", sep));
}

/** What `using` becomes, which older versions of Node do not know. */
function isHelper(id) {
  return id.startsWith("\0");
}
