// `npm run -s sbom [-- FILE]`: the software bill of materials of what is shipped, as CycloneDX JSON, from package-lock.json. Written to
// the file, or printed. Not by `npm sbom`: with `--omit dev` it leaves out packages that development needs too.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./setup.mjs";

const read = (file) => JSON.parse(readFileSync(join(root, file), "utf8"));
const { name, version, license } = read("packages/junctor/package.json");
const { packages } = read("package-lock.json");

const toPurl = (packageName, packageVersion) =>
  `pkg:npm/${packageName.replace("@", "%40")}@${packageVersion}`;
const nameOf = (path) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);

// Our own packages are links in the lock file, and all of them are what the bill is for. Some of what core needs is bundled into it:
// for npm those are for development only.
const isOurs = (path) =>
  path === "" ||
  path.startsWith("packages/") ||
  nameOf(path).startsWith("@junctor/") ||
  nameOf(path) === name;
const bundled = new Set(["ajv", "ajv-formats"]);
for (const dependency of bundled) {
  for (const needed of Object.keys(packages[`node_modules/${dependency}`].dependencies ?? {}))
    bundled.add(needed);
}
const shipped = Object.entries(packages).filter(
  ([path, { dev, devOptional }]) =>
    !isOurs(path) && ((dev !== true && devOptional !== true) || bundled.has(nameOf(path))),
);
const components = shipped.map(([path, { version: packageVersion, license: terms, integrity }]) => ({
  type: "library",
  "bom-ref": toPurl(nameOf(path), packageVersion),
  name: nameOf(path),
  version: packageVersion,
  scope: "required",
  purl: toPurl(nameOf(path), packageVersion),
  ...(terms === undefined ? {} : { licenses: [{ expression: terms }] }),
  ...(integrity === undefined ? {} : { hashes: [toHash(integrity)] }),
}));

/** The references of the packages that a package of the lock file needs. */
const referencesOf = ({ dependencies = {} }) =>
  Object.keys(dependencies).flatMap((needed) =>
    components.filter((component) => component.name === needed).map((component) => component["bom-ref"]),
  );
const own = toPurl(name, version);
const bom = {
  $schema: "http://cyclonedx.org/schema/bom-1.5.schema.json",
  bomFormat: "CycloneDX",
  specVersion: "1.5",
  serialNumber: `urn:uuid:${toUuid(JSON.stringify(components))}`,
  version: 1,
  metadata: {
    component: {
      type: "library",
      "bom-ref": own,
      name,
      version,
      purl: own,
      licenses: [{ license: { id: license } }],
    },
  },
  components,
  dependencies: [
    {
      ref: own,
      dependsOn: ["core", "server", "client", "junctor"]
        .flatMap((each) => referencesOf(packages[`packages/${each}`]))
        .concat(referencesOf({ dependencies: { ajv: "", "ajv-formats": "" } })),
    },
    ...shipped.map(([path, entry]) => ({
      ref: toPurl(nameOf(path), entry.version),
      dependsOn: referencesOf(entry),
    })),
  ],
};

const text = `${JSON.stringify(bom, undefined, 2)}\n`;
const [, , file] = process.argv;
if (file === undefined) process.stdout.write(text);
else writeFileSync(file, text);

/** `sha512-BASE64` in the form of CycloneDX. */
function toHash(integrity) {
  const [algorithm, digest] = integrity.split("-");
  return { alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(digest, "base64").toString("hex") };
}

/** The same list has the same number, so that two bills can be compared. */
function toUuid(list) {
  const hex = createHash("sha256").update(list).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
