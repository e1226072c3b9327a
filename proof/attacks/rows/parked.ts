import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startTestGateway } from "../../../test/gateway/support/gateway.ts";
import { mirrored, modernCall, modernMeta, postOf } from "../../../test/support/http-wire.ts";
import { RawSocket } from "../../../test/support/raw-http.ts";
import { fixture, makeFolder, until } from "../lib/gateway.ts";
import { type Line, type Row, type Scale, toText } from "../lib/row.ts";

const callers = 20;
/** One server may have 4,096 calls underway. */
const servers = ["up0", "up1", "up2", "up3"];
const keyOf = (index: number): string => `key-of-caller-number-${index}`;

/** Objects and buffers that are in use, after the garbage is collected. */
function inUse(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function run(scale: Scale): Promise<readonly Line[]> {
  const isFull = scale === "full";
  const calls = isFull ? 10_000 : 1_000;
  // Long enough to park all of them before the first is given up.
  const ttlMs = isFull ? 120_000 : 5000;
  const log = join(makeFolder(), "events.log");
  const upstream = fork(fixture("bridge-upstream.mjs"), ["--serves", "legacy", "--http", "--log", log]);
  const [port] = (await once(upstream, "message")) as [number];
  const names = Array.from({ length: callers }, (_, index) => index);
  await using at = await startTestGateway(
    {
      mcpServers: Object.fromEntries(servers.map((name) => [name, { url: `http://127.0.0.1:${port}/mcp` }])),
      junctor: {
        keys: Object.fromEntries(names.map((index) => [`caller-${index}`, { env: `KEY_${index}` }])),
      },
    },
    {
      parking: { ttlMs },
      env: { ...process.env, ...Object.fromEntries(names.map((index) => [`KEY_${index}`, keyOf(index)])) },
    },
  );
  const before = inUse();
  let parked = 0;
  const others: string[] = [];
  /** One caller asks for so many calls, one after the other, and comes back for none. */
  const abandon = async (caller: number, count: number): Promise<void> => {
    using socket = new RawSocket(at.listener.port);
    for (let call = 0; call < count; call++) {
      const _meta = modernMeta({ elicitation: { form: {} } });
      const frame = modernCall(
        `${servers[call % servers.length]}__ask`,
        { nonce: `c${caller}x${call}`, rounds: [["form"]] },
        { _meta },
      );
      const headers = { ...mirrored(frame), authorization: `Bearer ${keyOf(caller)}` };
      const reply = await socket.send(postOf(frame, headers)).complete;
      const message = reply.messages.at(-1);
      if (message?.result?.["resultType"] === "input_required") parked++;
      else others.push(JSON.stringify(message).slice(0, 200));
    }
  };
  await Promise.all(names.map((index) => abandon(index, calls / callers)));
  const heldBytes = inUse() - before;
  const abandoned = parked;
  /** Calls whose server heard that they are given up: by an abort, or by an answer to their question. */
  const givenUp = (): number => {
    const lines = readFileSync(log, "utf8").split("\n");
    const ended = lines.filter((line) => line.startsWith("answered ") || line.startsWith("cancelled "));
    return new Set(ended.map((line) => line.split(" ")[1])).size;
  };
  // Not too often: the gateway is in this process, and the log is long.
  const isOver = await until(async () => {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    return givenUp() >= abandoned;
  }, ttlMs + 60_000);
  const given = givenUp();
  upstream.kill("SIGKILL");
  return [
    {
      what: "calls whose server asks something and whose modern caller never comes back",
      count: `${toText(calls)} calls of ${callers} callers`,
      bound: "all are parked and given up after their time, the server is told; at most 64 KB each",
      figure:
        `${toText(abandoned)} parked, ${toText(given)} given up after ${ttlMs / 1000} s, ${(heldBytes / calls / 1024).toFixed(1)} KB each` +
        (others.length === 0 ? "" : `; ${others.length} other answers, first ${others[0]}`),
      isMet: isOver && others.length === 0 && heldBytes / calls <= 64 * 1024,
    },
  ];
}

export const row: Row = {
  title: "Abandoned parked calls",
  how: "A legacy server over HTTP asks in the middle of each call; callers of the modern era leave with the question and stay away.",
  limitMinutes: 15,
  isInShort: true,
  run,
};
