import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  initializeOf,
  legacyCall,
  mirrored,
  modern,
  modernCall,
  postOf,
} from "../../../test/support/http-wire.ts";
import { createRandom } from "../../../test/support/random.ts";
import { RawSocket, toBytes } from "../../../test/support/raw-http.ts";
import type { Frame } from "../../../test/support/wire-schema.ts";
import { fixture, makeFolder, readMemory, startGateway } from "../lib/gateway.ts";
import { type Line, type Row, type Scale, seed, toMegabytes, toText } from "../lib/row.ts";

/** Pieces that parsers, tables and servers have tripped over. */
const words = [
  "__proto__",
  "constructor",
  "toString",
  '"id":null',
  '"method":"tools/call"',
  '"name":"up__secret"',
  '"result":{}',
  "\u0000",
  "\u2028",
  "\\ud800",
  "1e999",
  "-0",
  "[[[[[[[[",
  '{"a":',
  "\r\n\r\n",
  "\n",
  "%00",
  "../",
  "}".repeat(40),
  "9".repeat(400),
].map((word) => Buffer.from(word));

type Random = () => number;
const below = (random: Random, limit: number): number => Math.floor(random() * limit);

/** Changes one to four places of a text. */
function mutate(bytes: Buffer, random: Random): Buffer {
  let text = bytes;
  for (let change = 1 + below(random, 4); change > 0; change--) {
    const at = below(random, text.length + 1);
    const length = below(random, 12);
    const rest = text.subarray(at);
    const word = words[below(random, words.length)]!;
    const insert: readonly Buffer[] = [
      Buffer.from([below(random, 256)]),
      word,
      text.subarray(at, at + length),
      Buffer.alloc(0),
    ];
    const kept = random() < 0.5 ? rest : rest.subarray(Math.min(length, rest.length));
    text = Buffer.concat([text.subarray(0, at), insert[below(random, insert.length)]!, kept]);
  }
  return text;
}

/** What happened to the requests of all senders. */
interface Tally {
  sent: number;
  answered: number;
  cut: number;
  readonly faults: string[];
}

class Sender {
  readonly #port: number;
  readonly #random: Random;
  readonly #tally: Tally;
  #socket: RawSocket | undefined;
  readonly #session: string;

  constructor(port: number, session: string, random: Random, tally: Tally) {
    this.#port = port;
    this.#session = session;
    this.#random = random;
    this.#tally = tally;
  }

  async send(): Promise<void> {
    const random = this.#random;
    const call = { text: "hi", n: below(random, 1000) };
    const frames: readonly Frame[] = [
      modernCall("up__open", call),
      modern("tools/list"),
      modern("resources/read", { uri: "note://open" }),
      legacyCall(below(random, 100), "up__open", call),
      initializeOf("2025-11-25"),
      { jsonrpc: "2.0", id: 3, method: "prompts/get", params: { name: "up__open" } },
    ];
    const kind = below(random, frames.length);
    const frame = frames[kind]!;
    const session = kind === 4 ? undefined : this.#session;
    const headers = kind < 3 ? mirrored(frame) : { "mcp-session-id": session };
    const body = Buffer.from(JSON.stringify(frame));
    const isBody = random() < 0.85;
    const post = postOf("", headers);
    const bytes = isBody
      ? toBytes({ ...post, body: mutate(body, random) }, `127.0.0.1:${this.#port}`)
      : mutate(toBytes({ ...post, body }, `127.0.0.1:${this.#port}`), random);
    await this.#exchange(bytes, isBody);
  }

  /** A request whose head was changed may announce more than comes, so its socket says that nothing more will. */
  async #exchange(bytes: Buffer, isBody: boolean): Promise<void> {
    const tally = this.#tally;
    const socket = (this.#socket ??= new RawSocket(this.#port));
    tally.sent++;
    const reply = socket.send(bytes);
    if (!isBody) socket.socket.end();
    const limit = setTimeout(() => {
      tally.faults.push(`no end: ${bytes.toString("latin1").slice(0, 300)}`);
      socket[Symbol.dispose]();
    }, 30_000);
    // A stream that listens has no end; its head is an answer.
    const isAnswered = ({ isComplete, isStream, status }: typeof reply): boolean =>
      isComplete || (isStream && status === 200);
    const ended = await reply.until("it was answered", isAnswered).catch(() => undefined);
    clearTimeout(limit);
    if (ended === undefined) tally.cut++;
    else tally.answered++;
    if (reply.status >= 500 && reply.status !== 501 && reply.status !== 505)
      tally.faults.push(
        `${reply.status}: ${bytes.toString("latin1").slice(0, 300)} got ${reply.body.slice(0, 200)}`,
      );
    if (isBody && reply.isComplete && reply.headers["connection"] !== "close") return;
    socket[Symbol.dispose]();
    this.#socket = undefined;
  }
}

async function run(scale: Scale): Promise<readonly Line[]> {
  const requests = scale === "full" ? 1_000_000 : 5000;
  const record = join(makeFolder(), "record.jsonl");
  await using gateway = await startGateway(
    {
      mcpServers: {
        up: { command: process.execPath, args: [fixture("gateway-echo.mjs"), `--record=${record}`] },
      },
      junctor: { servers: { up: { deny: ["secret", "rm_*"] } } },
    },
    { logLevel: "error" },
  );
  const { port, pid } = gateway;
  const tally: Tally = { sent: 0, answered: 0, cut: 0, faults: [] };
  const shake = async (): Promise<string> => {
    using socket = new RawSocket(port);
    const reply = await socket.send(postOf(initializeOf("2025-11-25"))).complete;
    return reply.headers["mcp-session-id"]!;
  };
  const before = readMemory(pid).now;
  await Promise.all(
    Array.from({ length: 16 }, async (_, lane) => {
      const random = createRandom(seed + lane);
      let sender = new Sender(port, await shake(), random, tally);
      for (let count = 0; tally.sent < requests; count++) {
        // Some of what is sent ends a session.
        if (count % 500 === 499) sender = new Sender(port, await shake(), random, tally);
        await sender.send();
      }
    }),
  );
  const after = modernCall("up__open", {});
  using last = new RawSocket(port);
  const works = (await last.send(postOf(after, mirrored(after))).complete).body.includes("called open");
  const grown = readMemory(pid).peak - before;
  const recorded = readFileSync(record, "utf8");
  const forbidden = (recorded.match(/\\"name\\":\\"(secret|rm_all)\\"/g) ?? []).length;
  const { sent, answered, cut, faults } = tally;
  const isAlive = gateway.child.exitCode === null;
  for (const fault of faults.slice(0, 5)) console.error(fault);
  return [
    {
      what: "requests of both eras with one to four mutations in body or head",
      count: `${toText(sent)} requests`,
      bound: "the process lives and works, 0 without end, 0 of status 5xx, 0 denied tools reached",
      figure:
        `${toText(answered)} answered, ${toText(cut)} cut off, ${faults.length} faults, ${forbidden} denied tools reached, ` +
        `seed ${seed}${faults.length > 0 ? `; first: ${faults[0]!.slice(0, 160)}` : ""}`,
      isMet: isAlive && works && faults.length === 0 && forbidden === 0,
    },
    {
      what: "memory of the gateway under them",
      count: `${toText(sent)} requests`,
      bound: "grows by at most 256 MB",
      figure: `grew by ${toMegabytes(grown)} at most`,
      isMet: grown < 256 * 2 ** 20,
    },
  ];
}

export const row: Row = {
  title: "Mutated requests",
  how:
    "16 clients send requests of both eras to `junctor serve`, each with bytes flipped, cut, doubled or replaced by pieces that parsers trip " +
    "over. The server behind the gateway records what reaches it.",
  limitMinutes: 120,
  isInShort: true,
  run,
};
