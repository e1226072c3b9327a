import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { root } from "./source-graph.ts";

interface Bom {
  readonly bomFormat: string;
  readonly metadata: { readonly component: { readonly name: string; readonly version: string } };
  readonly components: readonly { readonly name: string; readonly version: string; readonly purl: string }[];
}

interface LockFile {
  readonly packages: {
    readonly [path: string]: {
      readonly version: string;
      readonly link?: boolean;
      readonly dev?: boolean;
      readonly devOptional?: boolean;
    };
  };
}

test("the bill of materials is CycloneDX and has every package that is shipped, and no other", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [join(root, "scripts/sbom.mjs")]);
  const bom = JSON.parse(stdout) as Bom;
  expect(bom.bomFormat).toBe("CycloneDX");
  const { version } = JSON.parse(readFileSync(join(root, "packages/junctor/package.json"), "utf8")) as {
    readonly version: string;
  };
  expect(bom.metadata.component).toMatchObject({ name: "junctor", version });
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as LockFile;
  const shipped = Object.entries(packages).flatMap(([path, { version, link, dev, devOptional }]) =>
    path === "" || path.startsWith("packages/") || link === true || dev === true || devOptional === true
      ? []
      : [`${path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length)}@${version}`],
  );
  // The bundle of core has these in it, and no package depends on them.
  const bundled = [
    "ajv",
    "ajv-formats",
    "fast-deep-equal",
    "fast-uri",
    "json-schema-traverse",
    "require-from-string",
  ].map((name) => `${name}@${packages[`node_modules/${name}`]?.version}`);
  expect(bom.components.map(({ name, version }) => `${name}@${version}`).toSorted()).toEqual(
    [...shipped, ...bundled].toSorted(),
  );
  expect(bom.components.every(({ purl }) => purl.startsWith("pkg:npm/"))).toBe(true);
});
