import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { isolatedDeclarationSync } from "rolldown/experimental";
import { describe, expect, test } from "vitest";
import { loadErrorEntries } from "../packages/core/src/errors/index.ts";
import { packageVersion } from "../packages/core/src/options/version.ts";
import { parseExports, published, readSource, root } from "./source-graph.ts";

interface Manifest {
  readonly version: string;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
}

// Every public name, types included, is in test/public-names/. A change there is a change of the public interface: it belongs in
// CHANGELOG.md too. `npx vitest run --project unit test/exports.test.ts -u` writes them again.
const entryPoints = [
  { file: "server/src/index.ts", most: 120 },
  { file: "server/src/fetch.ts", most: 5 },
  { file: "client/src/index.ts", most: 50 },
  { file: "client/src/ai-sdk.ts", most: 5 },
  { file: "client/src/anthropic.ts", most: 5 },
  { file: "client/src/openai.ts", most: 5 },
  { file: "junctor/src/index.ts", most: 60 },
  { file: "junctor/src/testing/index.ts", most: 15 },
];

describe.each(entryPoints)("packages/$file", ({ file, most }) => {
  const names = ownNamesOf(file);

  test("exports exactly the names of its list", async () => {
    const list = `public-names/${file.replace("/src/", "-").replace("/index.ts", "").replace(".ts", "")}.txt`;
    await expect(`${names.join("\n")}\n`).toMatchFileSnapshot(list.replace("-index", ""));
  });

  test(`has at most ${most} of its own`, () => {
    expect(names.length).toBeLessThanOrEqual(most);
  });

  test("loads, and no name is undefined", async () => {
    const module = (await import(join(root, "packages", file))) as Record<string, unknown>;
    expect(Object.values(module)).not.toContain(undefined);
  });
});

test("junctor exports all of the server and the client, so that one import is enough", async () => {
  const load = async (file: string): Promise<readonly string[]> =>
    Object.keys((await import(join(root, "packages", file))) as object);
  const all = await load("junctor/src/index.ts");
  expect(all).toEqual(expect.arrayContaining([...(await load("server/src/index.ts"))]));
  expect(all).toEqual(expect.arrayContaining([...(await load("client/src/index.ts"))]));
});

test("every error that a program can meet can be told apart by its class", async () => {
  const names = entryPoints.flatMap(({ file }) => ownNamesOf(file));
  const met = (await loadErrorEntries()).filter(({ code }) => !/^(?:admin|cli)\./.test(code));
  expect(names).toEqual(expect.arrayContaining(met.map(({ className }) => className)));
});

describe.each(published)("packages/%s/package.json", (name) => {
  const manifest = manifestOf(name);

  test("has the version of all", () => {
    expect(manifest.version).toBe(packageVersion);
    for (const [dependency, version] of Object.entries(manifest.dependencies ?? {})) {
      if (dependency.startsWith("@junctor/")) expect(version).toBe(packageVersion);
    }
  });

  test("leads to files that are built from the source it names", () => {
    for (const target of Object.values(manifest.exports)) {
      if (typeof target === "string") continue;
      const source = target["@junctor/source"] ?? "";
      const built = source.replace("./src/", "./dist/").replace(/\.ts$/, "");
      expect(target).toMatchObject({ types: `${built}.d.ts`, default: `${built}.js` });
      if (!source.includes("*")) expect(existsSync(join(root, "packages", name, source))).toBe(true);
    }
    for (const target of Object.values(manifest.bin ?? {})) {
      const source = target.replace(/^dist\//, `${name}/src/`).replace(/\.js$/, ".ts");
      expect(readSource(source)).toMatch(/^#!\/usr\/bin\/env node\n/);
    }
  });
});

test("a tool author installs two packages beside @junctor/server", () => {
  expect(Object.keys(manifestOf("server").dependencies ?? {})).toEqual([
    "@junctor/core",
    "@standard-schema/spec",
  ]);
  expect(manifestOf("core").dependencies).toBeUndefined();
});

describe("the check", () => {
  test("sees values, types and renamed names", () => {
    const code = `export { b, type A } from "./x.ts"; export type { C as D } from "./y.ts";`;
    expect(parseExports(code)).toEqual(["A", "D", "b"]);
  });

  test("refuses what would hide a name", () => {
    expect(() => parseExports(`export * from "./x.ts";`)).toThrow("list the names");
    expect(() => parseExports("export const a = 1;")).toThrow("own file");
  });
});

/** The names that an entry point lists itself, without those it passes on from other packages as a whole. */
function ownNamesOf(file: string): readonly string[] {
  return parseExports(readSource(file).replaceAll(/^export \* from "@junctor\/\w+";$/gm, ""));
}

function manifestOf(name: string): Manifest {
  return JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8")) as Manifest;
}

// In junctor types follow from tables, so the compiler's own option is not on.
test.each(["core", "server", "client"])("every exported value of %s states its type", (name) => {
  const source = join(root, "packages", name, "src");
  const files = readdirSync(source, { recursive: true, encoding: "utf8" });
  const wrong = files
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .flatMap((file) => {
      const { errors } = isolatedDeclarationSync(file, readFileSync(join(source, file), "utf8"), {});
      return errors.map(({ message }) => `${file}: ${message}`);
    });
  expect(wrong).toEqual([]);
});
