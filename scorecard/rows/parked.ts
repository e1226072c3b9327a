import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startTestGateway } from "../../test/gateway/support/gateway.ts";
import { mirrored, modernCall, modernMeta, postOf } from "../../test/support/http-wire.ts";
import { RawSocket } from "../../test/support/raw-http.ts";
import { fixture, makeFolder, until } from "../lib/gateway.ts";
import { type Line, type Row, type Scale, toText } from "../lib/row.ts";

const callers = 20;
const keyOf = (index: number): string => `key-of-caller-number-${index}`;

/** Objects and buffers that are in use, after the garbage is collected. */
function inUse(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function run(scale: Scale): Promise<readonly Line[]> {
  const isFull = scale === "full";
  const calls = isFull ? 10_000 : 300;
  const ttlMs = isFull ? 30_000 : 5000;
  const log = join(makeFolder(), "events.log");
  const upstream = fork(fixture("bridge-upstream.mjs"), ["--serves", "legacy", "--http", "--log", log]);
  const [port] = (await once(upstream, "message")) as [number];
  const names = Array.from({ length: callers }, (_, index) => index);
  await using at = await startTestGateway(
    {
      mcpServers: { up: { url: `http://127.0.0.1:${port}/mcp` } },
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
      const frame = modernCall("up__ask", { nonce: `c${caller}x${call}`, rounds: [["form"]] }, { _meta });
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
  const eventsOf = (word: string): number =>
    readFileSync(log, "utf8")
      .split("\n")
      .filter((line) => line.startsWith(`${word} `)).length;
  const isOver = await until(() => eventsOf("answered") + eventsOf("cancelled") >= abandoned, ttlMs + 60_000);
  const given = Math.max(eventsOf("answered"), eventsOf("cancelled"));
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
