// `node proof/attacks/chaos.mjs NAME [COUNT]`: the tests that kill things, with many more rounds than `npm test` has time for.
//
//   kill      servers behind a gateway under load, killed COUNT times in all (100)
//   gateway   the gateway itself, killed COUNT times (50); nothing may be left of its children
//   daemon    the daemon of attach, its fronts and servers killed, replaced and edited, COUNT times (100)
//   cluster   three replicas, Redis and haproxy under load: `-- cluster --minutes 30 --seed 7` (2 minutes, a random seed)
//   hostile   children that crash, hang, flood and so on, measured in COUNT pairs of slices each (15)

import { spawn } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadTypeScript } from "../../scripts/load-typescript.mjs";
import { root, setup } from "../../scripts/setup.mjs";

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
if (name === "cluster") process.exit((await runCluster(process.argv.slice(3))) ? 0 : 1);
if (name === undefined || !Object.hasOwn(chaos, name)) {
  console.error(`Usage: node proof/attacks/chaos.mjs ${Object.keys(chaos).join("|")} [COUNT]`);
  console.error("       node proof/attacks/chaos.mjs cluster [--minutes N] [--seed N]");
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

async function runCluster(args) {
  const options = { minutes: { type: "string", default: "2" }, seed: { type: "string" } };
  const { values } = parseArgs({ args, options });
  setup();
  const { missingPrograms } = await loadTypeScript("test/cluster/support/program.ts");
  const missing = missingPrograms();
  if (missing !== undefined) {
    console.log(`${missing} cannot be had here: the chaos of several replicas is skipped`);
    return true;
  }
  const { runChaos } = await loadTypeScript("test/cluster/chaos/run.ts");
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  return runChaos({ minutes: Number(values.minutes), seed });
}
