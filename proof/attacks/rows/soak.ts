import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { startLoad } from "../../../test/gateway/support/load.ts";
import {
  initializeOf,
  legacyCall,
  modern,
  mirrored,
  postOf,
  sse,
  toPairs,
} from "../../../test/support/http-wire.ts";
import { RawSocket } from "../../../test/support/raw-http.ts";
import { startEcho } from "../lib/echo.ts";
import { childrenOf, fixture, readMemory, startGateway } from "../lib/gateway.ts";
import { type Line, type Row, type Scale, toText } from "../lib/row.ts";

const minutes = Number(process.env["SCORECARD_SOAK_MINUTES"] ?? 60);
const children = ["s0", "s1", "s2"];

/** Something that happens every so often during the run. */
interface Churn {
  readonly everyMs: number;
  act(): Promise<void> | void;
}

async function run(scale: Scale): Promise<readonly Line[]> {
  const totalMs = (scale === "full" ? minutes : 0.3) * 60_000;
  const echo = await startEcho();
  const config = {
    mcpServers: {
      ...Object.fromEntries(
        children.map((name) => [
          name,
          { command: process.execPath, args: [fixture("children/chaos-server.mjs"), name] },
        ]),
      ),
      web: { url: `${echo.origin}/mcp` },
    },
    junctor: { servers: {} as object },
  };
  await using gateway = await startGateway(config, { logLevel: "warn" });
  const { port, pid } = gateway;
  const load = await startLoad({
    port,
    servers: children,
    callsPerSecond: 40,
    workMs: (index) => (index * 7) % 50,
  });
  const done = { sessions: 0, kills: 0, edits: 0, streams: 0, hangUps: 0 };
  const killed = new Set<string>();
  const churn: readonly Churn[] = [
    {
      everyMs: 1000,
      act: async () => {
        done.sessions++;
        await useSession(port);
      },
    },
    {
      everyMs: 2000,
      act: () => {
        done.hangUps++;
        hangUp(port);
      },
    },
    {
      everyMs: 3000,
      act: async () => {
        done.streams++;
        await listenBriefly(port);
      },
    },
    {
      everyMs: 30_000,
      act: () => {
        const name = children[done.kills++ % children.length]!;
        const victim = childrenOf(pid).find(({ command }) => command.trimEnd().endsWith(` ${name}`));
        killed.add(name);
        if (victim !== undefined) process.kill(victim.pid, "SIGKILL");
      },
    },
    {
      everyMs: 45_000,
      act: () => {
        const description = `edit ${++done.edits}`;
        const edited = { ...config, junctor: { servers: { s0: { tools: { work: { description } } } } } };
        writeFileSync(join(gateway.folder, "gateway.json"), JSON.stringify(edited), { mode: 0o600 });
      },
    },
  ];
  const timers = churn.map(({ everyMs, act }) =>
    setInterval(() => void Promise.resolve(act()).catch(() => {}), everyMs),
  );
  const samples: { readonly hours: number; readonly megabytes: number }[] = [];
  const startedAt = performance.now();
  while (performance.now() - startedAt < totalMs && gateway.child.exitCode === null) {
    await new Promise((resolve) => setTimeout(resolve, Math.min(5000, totalMs / 20)));
    const hours = (performance.now() - startedAt) / 3_600_000;
    samples.push({ hours, megabytes: readMemory(pid).now / 2 ** 20 });
  }
  for (const timer of timers) clearInterval(timer);
  const records = await load.stop();
  echo.end();
  const wrong = records.flatMap(({ outcome }) => (outcome.kind === "wrong" ? [outcome.what] : []));
  const failed = records.filter(({ outcome }) => outcome.kind === "error").length;
  // The first quarter is for warming up.
  const settled = samples.slice(Math.floor(samples.length / 4));
  const slope = slopeOf(settled);
  const first = settled[0]?.megabytes ?? 0;
  const last = settled.at(-1)?.megabytes ?? 0;
  const isAlive = gateway.child.exitCode === null;
  const descriptors = isAlive
    ? readFileSync(`/proc/${pid}/status`, "utf8").match(/FDSize:\s+(\d+)/)?.[1]
    : "0";
  return [
    {
      what: `${(totalMs / 60_000).toFixed(0)} minutes of calls with churn: sessions, streams, callers that hang up, kills of servers, edits of the config`,
      count:
        `${toText(records.length)} calls, ${toText(done.sessions)} sessions, ${toText(done.streams)} streams, ` +
        `${toText(done.hangUps)} hang-ups, ${done.kills} kills, ${done.edits} edits`,
      bound: "0 calls without an outcome, the process lives",
      figure:
        `${wrong.length} without an outcome${wrong[0] === undefined ? "" : ` (first: ${wrong[0].slice(0, 100)})`}, ` +
        `${failed} failed with one (servers that were killed), ${isAlive ? "alive" : "dead"}, room for ${descriptors} descriptors`,
      isMet: wrong.length === 0 && isAlive,
    },
    {
      what: "memory of the gateway, after the first quarter",
      count: `${settled.length} samples`,
      bound: "slope at most 20 MB an hour",
      figure: `slope ${slope.toFixed(1)} MB an hour; ${first.toFixed(0)} MB, at the end ${last.toFixed(0)} MB`,
      isMet: slope <= 20 || scale === "short",
    },
  ];
}

/** Least squares. */
function slopeOf(samples: readonly { readonly hours: number; readonly megabytes: number }[]): number {
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const x = mean(samples.map(({ hours }) => hours));
  const y = mean(samples.map(({ megabytes }) => megabytes));
  const covariance = samples.reduce((sum, { hours, megabytes }) => sum + (hours - x) * (megabytes - y), 0);
  return covariance / samples.reduce((sum, { hours }) => sum + (hours - x) ** 2, 0);
}

async function useSession(port: number): Promise<void> {
  using socket = new RawSocket(port);
  const begun = await socket.send(postOf(initializeOf("2025-11-25"))).complete;
  const session = { "mcp-session-id": begun.headers["mcp-session-id"] };
  await socket.send(postOf(legacyCall(1, "web__echo", { text: "hi" }), session)).complete;
  await socket.send({ method: "DELETE", headers: toPairs(session) }).complete;
}

function hangUp(port: number): void {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.end("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{");
}

async function listenBriefly(port: number): Promise<void> {
  using socket = new RawSocket(port);
  const frame = modern("subscriptions/listen", { notifications: { toolsListChanged: true } });
  const reply = socket.send(postOf(frame, { ...mirrored(frame), accept: `application/json, ${sse}` }));
  await reply.event(1);
}

export const row: Row = {
  title: "Soak",
  how: "`junctor serve` with three servers on stdio and one over HTTP, for an hour; memory is sampled every five seconds (resident pages).",
  limitMinutes: minutes + 10,
  isInShort: false,
  run,
};
