import { startLoad } from "../../../test/gateway/support/load.ts";
import { quantile } from "../../../test/gateway/support/slice.ts";
import { childrenOf, fixture, hostile, startGateway, until } from "../lib/gateway.ts";
import { type Line, type Row, type Scale, toText } from "../lib/row.ts";

const servers = ["s0", "s1"];
const config = {
  mcpServers: Object.fromEntries(
    servers.map((name) => [
      name,
      { command: process.execPath, args: [fixture("children/chaos-server.mjs"), name] },
    ]),
  ),
};

async function run(scale: Scale): Promise<readonly Line[]> {
  const jumps = scale === "full" ? 80 : 8;
  await using gateway = await startGateway(config, { nodeArgs: ["--import", hostile("jump-clock.mjs")] });
  const { port, pid } = gateway;
  const load = await startLoad({ port, servers: ["s0"], callsPerSecond: 50, workMs: (index) => index % 30 });
  const processOf = (name: string): number | undefined =>
    childrenOf(pid).find(({ command }) => command.trimEnd().endsWith(` ${name}`))?.pid;
  const backMs: number[] = [];
  let lost = 0;
  for (let jump = 0; jump < jumps; jump++) {
    process.kill(pid, "SIGUSR2");
    await load.made((jump + 1) * 50);
    // A server that dies just before a jump is started again as if there had been none. It may be six times a minute.
    if (jump % 12 !== 2) continue;
    const old = processOf("s1");
    const killedAt = performance.now();
    if (old !== undefined) process.kill(old, "SIGKILL");
    process.kill(pid, "SIGUSR2");
    jump++;
    const isBack = await until(() => processOf("s1") !== undefined && processOf("s1") !== old, 60_000);
    if (!isBack) lost++;
    backMs.push(performance.now() - killedAt);
  }
  const records = await load.stop();
  const failed = records.filter(({ outcome }) => outcome.kind !== "result").length;
  const took = records.map(({ startedAt, endedAt }) => endedAt - startedAt);
  return [
    {
      what: "the wall clock of the gateway jumps by hours, a day, a year, forward and back, under load",
      count: `${jumps} jumps, ${toText(records.length)} calls`,
      bound: "0 calls fail or are delayed (p99 below 5 s)",
      figure: `${failed} calls failed, p99 ${quantile(took, 0.99).toFixed(0)} ms`,
      isMet: failed === 0 && quantile(took, 0.99) < 5000,
    },
    {
      what: "a server dies, and the clock jumps",
      count: `${backMs.length} times`,
      bound: "it is started again within 60 s each time",
      figure: `${lost} times it was not; slowest ${(Math.max(0, ...backMs) / 1000).toFixed(1)} s`,
      isMet: lost === 0,
    },
  ];
}

export const row: Row = {
  title: "Clock jumps",
  how: "`junctor serve` with a module that moves the wall clock of its process; timers and the monotonic clock go on.",
  limitMinutes: 10,
  isInShort: true,
  run,
};
