import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import type { Gateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { both, initializeOf, json, postOf, sse } from "../support/http-wire.ts";
import { type RawReply, RawSocket } from "../support/raw-http.ts";
import { seededJsonTexts } from "../support/seeded-json.ts";

// Invariant 2: what was authorised is what was sent. Documents no parser could write again are put through the gateway,
// and what arrives at either end is compared as text. Where a message has to be a line, a line break between tokens
// becomes a space, and nothing else changes.

const documents = Number(process.env["GATEWAY_DOCUMENTS"] ?? 2000);
const seed = Number(process.env["GATEWAY_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const lanes = 16;
const fixture = fileURLToPath(new URL("../fixtures/gateway-echo.mjs", import.meta.url));

const upstreams = ["pipe-legacy", "pipe-modern", "http-legacy", "http-modern"] as const;
type UpstreamName = (typeof upstreams)[number];

let gateway: Gateway;
let listener: HttpListener;
const cleanups: (() => unknown)[] = [];

/** Starts the echo server on a port of its own. */
async function listenToEcho(...args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [fixture, "--http", ...args], { stdio: ["pipe", "pipe", "inherit"] });
  cleanups.push(() => child.kill("SIGKILL"));
  const [port] = (await once(child.stdout, "data")) as [Buffer];
  return `http://127.0.0.1:${Number(port.toString())}/mcp`;
}

beforeAll(async () => {
  const command = process.execPath;
  const mcpServers = {
    "pipe-legacy": { command, args: [fixture] },
    "pipe-modern": { command, args: [fixture, "--era=modern"] },
    "http-legacy": { url: await listenToEcho() },
    "http-modern": { url: await listenToEcho("--era=modern") },
  };
  gateway = await createGateway({ mcpServers }, { firstListMs: 60_000 });
  listener = await listenHttp(gateway.server, { port: 0 });
  await gateway.ready;
});

afterAll(async () => {
  await listener?.close();
  await gateway?.close();
  for (const cleanup of cleanups) cleanup();
});

/** One document as it is to be sent. */
interface Parcel {
  readonly index: number;
  readonly args: string;
  readonly text: string;
  readonly odd: string;
}

function* parcels(count: number, from: number): Generator<Parcel> {
  const texts = seededJsonTexts(from, Number.POSITIVE_INFINITY);
  const next = (): string => texts.next().value as string;
  let text = '""';
  for (let index = 0; index < count; index++) {
    const document = next();
    // The last string there was, so that texts are as odd as the rest.
    if (document.trim().startsWith('"')) text = document.trim();
    const args = document.trim().startsWith("{") ? document.trim() : `{ "doc" :${document},"text":${text}\t}`;
    const own = args === document.trim() ? lastText(args) : text;
    yield { index, args, text: own, odd: next().trim() };
  }
}

/** What the echo server finds under `text`: a document may have such a key of its own. */
function lastText(args: string): string {
  return Object.hasOwn(JSON.parse(args) as object, "text") ? "?" : '""';
}

const toLine = (text: string): string => text.replaceAll(/[\n\r]/g, " ");

/** One client, with one socket, that sends one document after the other. */
class Sender implements Disposable {
  readonly #socket: RawSocket;
  readonly #lane: number;
  readonly #isModern: boolean;
  readonly #revision: string;
  #session: string | undefined;

  constructor(lane: number, revision?: string) {
    this.#socket = new RawSocket(listener.port);
    this.#lane = lane;
    this.#isModern = revision === undefined && lane % 2 === 0;
    this.#revision = revision ?? (lane % 4 === 1 ? "2025-11-25" : "2025-06-18");
  }

  /** Every other client can be asked something, which takes another way through the gateway. */
  get #capabilities(): object {
    return this.#lane % 8 < 4 ? {} : { roots: {} };
  }

  async connect(): Promise<void> {
    if (this.#isModern) return;
    const reply = await this.#socket.send(postOf(initializeOf(this.#revision, this.#capabilities))).complete;
    this.#session = reply.headers["mcp-session-id"];
    const headers = this.#headers();
    await this.#socket.send(postOf({ jsonrpc: "2.0", method: "notifications/initialized" }, headers))
      .complete;
  }

  send(upstream: UpstreamName, { args, odd, index }: Parcel, accept: string): Promise<RawReply> {
    const name = `${upstream}__echo`;
    const own = this.#isModern
      ? `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` +
        `${JSON.stringify(this.#capabilities)},`
      : "";
    const meta = `"_meta":{${own}"x/odd":${odd}}`;
    const members = [`"name":"${name}"`, `"arguments":${args}`, meta];
    const rotated = members.map((_, place) => members[(place + index) % members.length]);
    const body = `{"jsonrpc":"2.0","id":${index},"method":"tools/call","params":{${rotated.join(",")}}}`;
    const headers = this.#isModern
      ? { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name }
      : this.#headers();
    return this.#socket.send(postOf(body, { accept, ...headers })).complete;
  }

  #headers(): { readonly [name: string]: string | undefined } {
    return { "mcp-session-id": this.#session, "mcp-protocol-version": this.#revision };
  }

  [Symbol.dispose](): void {
    this.#socket[Symbol.dispose]();
  }
}

function textOf(reply: RawReply): string {
  return reply.isStream
    ? (reply.events.findLast(({ data }) => data !== undefined && data !== "")?.data ?? "")
    : reply.body;
}

/** What is missing from a reply, if anything. */
function findFault(upstream: UpstreamName, parcel: Parcel, reply: RawReply): string | undefined {
  const isPiped = upstream.startsWith("pipe");
  const arrived = isPiped ? toLine(parcel.args) : parcel.args;
  const returned = reply.isStream ? toLine(arrived) : arrived;
  const sha256 = createHash("sha256").update(arrived).digest("hex");
  // What `_meta` carries on is made a line at once.
  const odd = toLine(parcel.odd);
  const got = textOf(reply);
  const expected = [
    `"structuredContent":${returned}`,
    `"echo/args":${returned}`,
    `"echo/sha256":"${sha256}"`,
    `"echo/odd":${odd}}`,
    ...(parcel.text === "?" ? [] : [`"content":[{"type":"text","text":${parcel.text}}]`]),
    ...(sha256[0]! < "8" ? [] : [`"x-more":${returned}`]),
  ];
  const missing = expected.find((piece) => !got.includes(piece));
  if (reply.status === 200 && missing === undefined) return undefined;
  return `seed ${seed}, document ${parcel.index}, through ${upstream}: ${reply.status} lacks ${missing} in ${got}`;
}

test("the upstreams are of both eras, on pipes and over HTTP", () => {
  expect(gateway.status().map(({ name, status, era }) => `${name} ${status} ${era}`)).toEqual(
    upstreams.map((name) => `${name} up ${name.split("-")[1]}`),
  );
});

test(
  `${documents} random documents go through four upstreams, and come back, byte for byte (seed ${seed})`,
  { timeout: 900_000 },
  async () => {
    const startedAt = performance.now();
    const all = parcels(documents, seed);
    const faults: string[] = [];
    let bytes = 0;
    let done = 0;
    const senders = Array.from({ length: lanes }, (_, lane) => new Sender(lane));
    await Promise.all(
      senders.map(async (sender) => {
        await sender.connect();
        for (const parcel of all) {
          const upstream = upstreams[(parcel.index >> 3) % upstreams.length]!;
          const accept = parcel.index % 4 === 3 ? sse : parcel.index % 4 === 2 ? both : json;
          const reply = await sender.send(upstream, parcel, accept);
          const fault = findFault(upstream, parcel, reply);
          if (fault !== undefined) faults.push(fault);
          bytes += parcel.args.length;
          done++;
        }
      }),
    );
    for (const sender of senders) sender[Symbol.dispose]();
    const seconds = (performance.now() - startedAt) / 1000;
    const size = `${(bytes / 1e6).toFixed(1)} MB of arguments in ${seconds.toFixed(1)} s`;
    console.log(`${done} documents, seed ${seed}: ${faults.length} changed, ${size}`);
    expect(faults.slice(0, 3)).toEqual([]);
    expect(done).toBe(documents);
  },
);

describe("clients of revisions without structured content", () => {
  for (const revision of ["2024-11-05", "2025-03-26"]) {
    test(`${revision}: text and _meta come back as they were written (seed ${seed})`, async () => {
      using sender = new Sender(1, revision);
      await sender.connect();
      const faults: string[] = [];
      for (const parcel of parcels(200, seed + 1)) {
        const reply = await sender.send("http-modern", parcel, json);
        const pieces = [`"echo/args":${parcel.args}`, `"echo/odd":${toLine(parcel.odd)}}`];
        const missing = pieces.find((piece) => !reply.body.includes(piece));
        if (missing !== undefined) faults.push(`document ${parcel.index}: lacks ${missing} in ${reply.body}`);
      }
      expect(faults.slice(0, 2)).toEqual([]);
    });
  }
});

test("numbers no double can hold, and keys in any order or twice, survive in both directions", async () => {
  using modern = new Sender(0);
  using legacy = new Sender(1);
  await legacy.connect();
  const args =
    '{"b":12345678901234567890,"a":1.0,"z":-0,"e":1e400,"a":2,"__proto__":{"x":1.50},"1":1,"0":0,"u":"\\u0041\\ud800"}';
  for (const upstream of upstreams) {
    for (const sender of [modern, legacy]) {
      const parcel = { index: 0, args, text: '""', odd: "-0.0e-0" };
      expect(findFault(upstream, parcel, await sender.send(upstream, parcel, json))).toBeUndefined();
    }
  }
});
