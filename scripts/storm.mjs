// `npm run storm [-- CALLS]`: the storm test with many more calls than `npm test` has time for.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "./setup.mjs";

const calls = process.argv[2] ?? "100000";
const child = spawn(
  process.execPath,
  [join(root, "node_modules/vitest/vitest.mjs"), "run", "test/http/storm.test.ts"],
  { cwd: root, env: { ...process.env, JUNCTOR_STORM_CALLS: calls }, stdio: "inherit" },
);
child.on("close", (code) => (process.exitCode = code ?? 1));
