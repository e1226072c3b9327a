// `npm run proof -- NAME [PART] [OPTIONS]`: the one way to everything that is measured, attacked or compared. Installs and builds the
// checkout first if need be. Without a name, it lists what there is.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { reportSetupError, root, setup } from "../scripts/setup.mjs";

/** What can be run: the words after `--`, the program with its fixed arguments, and what it is for. */
const proofs = [
  ["attacks", "attacks/main.mjs", "attacks and faults, each with a bound; --short for CI, --only ROW,ROW"],
  ["attacks chaos", "attacks/chaos.mjs", "kills, restarts and cut wires; cluster --minutes 2 --seed 21"],
  ["attacks storm", "attacks/storm.mjs", "100,000 calls at once; --gateway for those through a gateway"],
  ["attacks page-soak", "attacks/page-soak.mjs", "the page open for ten minutes beside a busy gateway"],
  ["bench", "bench/main.mjs", "speed and size against the peers, all tables"],
  ["bench check", "bench/check.mjs", "the ratios that CI holds: npm run bench:check"],
  [
    "bench http",
    "bench/main.mjs --only servers --systems junctor,sdk-v1,sdk-v1-stateless,sdk-v2,sdk-v2-session,bare --goals http --strict",
    "servers over HTTP, with the goals",
  ],
  ["bench stdio", "bench/main.mjs --only stdio --goals stdio --strict", "servers over stdio, with the goals"],
  ["bench client", "bench/main.mjs --only clients --goals client --strict", "clients, with the goals"],
  ["bench gateway", "bench/main.mjs --only gateways --goals gateway --strict", "gateways, with the goals"],
  ["bench auth", "bench/auth.mjs", "what keys and tokens cost a call"],
  ["bench daemon", "bench/daemon.mjs", "memory and time with and without the daemon"],
  ["bench search", "bench/search.mjs", "how well tool search finds"],
  ["bench streams", "bench/streams.mjs", "streamed results"],
  ["bench workers", "bench/workers.mjs", "one process against several"],
  ["conformance", "conformance/main.mjs run", "the official suite against our server and client"],
  ["conformance gateway", "conformance/main.mjs run --gateway", "the same through a gateway"],
  ["conformance cluster", "conformance/cluster.mjs", "the same through three replicas"],
  ["conformance server", "conformance/main.mjs serve", "the suite's server alone"],
  [
    "conformance compatibility",
    "conformance/compatibility.mjs",
    "every client with every server: docs/evidence/compatibility.md",
  ],
  [
    "conformance prometheus",
    "conformance/prometheus.mjs",
    "metrics, alerts and dashboard held to a real Prometheus",
  ],
  [
    "conformance types",
    "conformance/types.mjs",
    "the packed types with TypeScript 5.4 to 7, library checks on",
  ],
  [
    "approvals",
    "attacks/approvals.mjs",
    "calls that a person must agree to: answered, forged and killed; --kills 30 --seed 7",
  ],
  [
    "once",
    "attacks/once.mjs",
    "calls with a key, cut, retried and killed: each runs once; --keys 2000 --seed 7",
  ],
  ["mistakes", "kit/mistakes.mjs", "mistakes of authors, found by TypeScript and when an app is made"],
  ["runtimes", "kit/runtimes.mjs", "one app and one client on Node, Bun, Deno and workerd"],
  ["frameworks", "kit/frameworks.mjs", "one app inside eight frameworks"],
  ["slow", "../scripts/test.mjs --slow", "the tests that are long or load the machine"],
  [
    "openapi",
    "openapi/main.mjs",
    "2,600 descriptions of APIs as tools, and calls held to them; --every 20 for a part",
  ],
  ["field", "field/main.mjs", "servers and clients from npm behind one gateway"],
  ["field search", "field/search.mjs", "tool search with real clients"],
  ["field apps", "field/apps/main.mjs", "servers with views and skills"],
];

const words = process.argv.slice(2);
// The longest name that fits, so that `bench check` is not `bench` with an argument.
const found = proofs
  .filter(([name]) => name.split(" ").every((word, at) => words[at] === word))
  .toSorted(([one], [other]) => other.length - one.length)[0];

if (found === undefined) {
  if (words.length > 0 && words[0] !== "--help") console.error(`There is no proof "${words.join(" ")}".\n`);
  console.error("npm run proof -- NAME [OPTIONS]\n");
  const width = Math.max(...proofs.map(([name]) => name.length));
  for (const [name, , about] of proofs) console.error(`  ${name.padEnd(width)}  ${about}`);
  process.exit(words[0] === "--help" ? 0 : 2);
}

try {
  setup();
} catch (error) {
  reportSetupError(error);
  process.exit(1);
}
const [name, program] = found;
const [file, ...fixed] = program.split(" ");
const args = [join(root, "proof", file), ...fixed, ...words.slice(name.split(" ").length)];
// Signals of the terminal reach the program too, and it ends as it likes.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => {});
const { status } = spawnSync(process.execPath, args, { stdio: "inherit" });
process.exitCode = status ?? 1;
