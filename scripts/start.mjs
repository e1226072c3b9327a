// `npm start -- ARGS` is `junctor serve ARGS` on a checkout that may not be installed or built yet.
// The command runs in this process, so signals and the exit code need no forwarding.

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { endWithNpm } from "./end-with-npm.mjs";
import { reportSetupError, root, setup } from "./setup.mjs";

const main = join(root, "dist/cli/main.js");

endWithNpm();
try {
  setup();
} catch (error) {
  reportSetupError(error);
  process.exit(1);
}
process.argv = [process.execPath, main, "serve", ...process.argv.slice(2)];
await import(pathToFileURL(main).href);
