// `npm run proof -- attacks storm [-- [--gateway] [CALLS]]`: the storm test with many more calls than `npm test` has time for; with
// `--gateway`, the one that goes through a gateway.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "../../scripts/setup.mjs";

const args = process.argv.slice(2);
const test = args.includes("--gateway") ? "test/gateway/storm.slow.test.ts" : "test/http/storm.slow.test.ts";
const calls = args.find((argument) => !argument.startsWith("-")) ?? "100000";
const child = spawn(process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), "run", test], {
  cwd: root,
  env: { ...process.env, JUNCTOR_STORM_CALLS: calls },
  stdio: "inherit",
});
child.on("close", (code) => (process.exitCode = code ?? 1));
