// Compiles conformance/ and runs one of its programs in this process, on a checkout that may not be installed or
// built yet.
//
//   npm run proof -- conformance                         the official suite against our own server and client
//   npm run proof -- conformance gateway                 the same through a gateway, also to a server of the official SDK
//   npm run proof -- conformance server --port N      the server alone
//
// proof/conformance/README.md has their options.

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { reportSetupError, root, setupConformance } from "../../scripts/setup.mjs";

const [program, ...args] = process.argv.slice(2);

try {
  setupConformance();
} catch (error) {
  reportSetupError(error);
  process.exit(1);
}

const main = join(root, `proof/conformance/dist/${program}.js`);
process.argv = [process.execPath, main, ...args];
await import(pathToFileURL(main).href);
