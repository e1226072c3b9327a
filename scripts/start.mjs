// `npm start -- ARGS` is `junctor serve ARGS` on a checkout that may not be installed or built yet.
// The command runs in this process, so signals and the exit code need no forwarding.

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { reportSetupError, root, setup } from "./setup.mjs";

const main = join(root, "packages/junctor/dist/cli/main.js");

const parent = process.ppid;
try {
  setup();
} catch (error) {
  reportSetupError(error);
  process.exit(1);
}
// npm and its shell ended during set-up. From here on the command itself ends with its parent.
if (process.ppid !== parent) process.exit(143);
process.argv = [process.execPath, main, "serve", ...process.argv.slice(2)];
await import(pathToFileURL(main).href);
