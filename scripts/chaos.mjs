// `node scripts/chaos.mjs NAME [COUNT]`: the tests that kill things, with many more rounds than `npm test` has time for.
//
//   kill      servers behind a gateway under load, killed COUNT times in all (100)
//   gateway   the gateway itself, killed COUNT times (50); nothing may be left of its children
//   daemon    the daemon of attach, its fronts and servers killed, replaced and edited, COUNT times (100)
//   hostile   children that crash, hang, flood and so on, measured in COUNT pairs of slices each (15)

import { spawn } from "node:child_process";
import { join } from "node:path";
import { root, setup } from "./setup.mjs";

const chaos = {
  kill: { test: "test/gateway/kill.slow.test.ts", variable: "JUNCTOR_KILLS", usual: "100" },
  gateway: { test: "test/gateway/gateway-kill.slow.test.ts", variable: "JUNCTOR_GATEWAY_KILLS", usual: "50" },
  daemon: { test: "test/daemon/chaos.slow.test.ts", variable: "JUNCTOR_DAEMON_ROUNDS", usual: "100" },
  hostile: {
    test: "test/gateway/hostile-children.slow.test.ts",
    variable: "JUNCTOR_HOSTILE_ROUNDS",
    usual: "15",
  },
};

const [, , name, count] = process.argv;
if (name === undefined || !Object.hasOwn(chaos, name)) {
  console.error(`Usage: node scripts/chaos.mjs ${Object.keys(chaos).join("|")} [COUNT]`);
  process.exit(2);
}
const { test, variable, usual } = chaos[name];
setup();
const child = spawn(process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), "run", test], {
  cwd: root,
  env: { ...process.env, [variable]: count ?? usual },
  stdio: "inherit",
});
child.on("close", (code) => (process.exitCode = code ?? 1));
