import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { initializeOf, legacyCall, mirrored, modernCall, modernMeta, postOf } from "../support/http-wire.ts";
import { type Message, type RawReply, RawSocket } from "../support/raw-http.ts";
import type { Frame } from "../support/wire-schema.ts";

// Invariant 1, two hops further: every client says `id: 1` and `progressToken: 1`, and all of them meet on one pipe or one
// port behind the gateway. Every call has a nonce; whatever a client hears must carry its own.

const clients = Number(process.env["JUNCTOR_STORM_CLIENTS"] ?? 1000);
const calls = Number(process.env["JUNCTOR_STORM_CALLS"] ?? 3000);
const fixture = fileURLToPath(new URL("../fixtures/gateway-echo.mjs", import.meta.url));
const upstreams = ["pipe-legacy", "pipe-modern", "http-legacy", "http-modern"] as const;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function listenToEcho(...args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [fixture, "--http", ...args], { stdio: ["pipe", "pipe", "inherit"] });
  cleanups.push(() => child.kill("SIGKILL"));
  const [port] = (await once(child.stdout, "data")) as [Buffer];
  return `http://127.0.0.1:${Number(port.toString())}/mcp`;
}

async function listenToGateway(): Promise<HttpListener> {
  const command = process.execPath;
  const gateway = await createGateway({
    mcpServers: {
      "pipe-legacy": { command, args: [fixture] },
      "pipe-modern": { command, args: [fixture, "--era=modern"] },
      "http-legacy": { url: await listenToEcho() },
      "http-modern": { url: await listenToEcho("--era=modern") },
    },
  });
  cleanups.push(() => gateway.close());
  const listener = await listenHttp(gateway.server, { port: 0, graceMs: 1000 });
  cleanups.push(() => listener.close());
  await gateway.ready;
  expect(gateway.status().map(({ status }) => status)).toEqual(["up", "up", "up", "up"]);
  return listener;
}

/** What a call asks for besides its answer. */
type Kind = "plain" | "progress" | "log" | "all";
const kinds: readonly Kind[] = ["plain", "progress", "log", "plain", "all"];

/** What was wrong with one answer. */
interface Fault {
  readonly kind: "astray" | "lost" | "failed";
  readonly text: string;
}

/** One of many: a socket of its own, and `id: 1` for everything. */
class StormClient implements Disposable {
  readonly #socket: RawSocket;
  readonly #index: number;
  readonly #isModern: boolean;
  #session: string | undefined;

  constructor(port: number, index: number) {
    this.#socket = new RawSocket(port);
    this.#index = index;
    this.#isModern = index % 2 === 0;
  }

  /** A legacy session has one level for all its calls, so only some sessions ask for a log. */
  get #isLogging(): boolean {
    return this.#index % 4 === 1;
  }

  get #capabilities(): object {
    return this.#index % 8 < 6 ? {} : { roots: {} };
  }

  async connect(): Promise<void> {
    if (this.#isModern) return;
    const reply = await this.#send(initializeOf("2025-11-25", this.#capabilities, 1)).complete;
    this.#session = reply.headers["mcp-session-id"]!;
    if (!this.#isLogging) return;
    await this.#send({ jsonrpc: "2.0", id: 1, method: "logging/setLevel", params: { level: "debug" } })
      .complete;
  }

  async call(round: number): Promise<readonly Fault[]> {
    const nonce = `${this.#index}/${round}/${Math.random()}`;
    const upstream = upstreams[(this.#index + round) % upstreams.length]!;
    const kind = kinds[(this.#index + 3 * round) % kinds.length]!;
    const wantsProgress = kind === "progress" || kind === "all";
    const wantsLog = this.#isModern ? kind === "log" || kind === "all" : this.#isLogging;
    const token = wantsProgress ? { progressToken: 1 } : {};
    const reply = await this.#call(`${upstream}__storm`, nonce, token, wantsLog).complete;
    // A legacy client that has set no level gets what the server likes.
    return findFaults(reply, nonce, {
      upstream,
      wantsProgress,
      wantsLog,
      mayLog: wantsLog || !this.#isModern,
    });
  }

  #call(name: string, nonce: string, token: object, wantsLog: boolean): RawReply {
    if (!this.#isModern) return this.#send(legacyCall(1, name, { nonce }, token));
    const level = wantsLog ? { "io.modelcontextprotocol/logLevel": "debug" } : {};
    const _meta = { ...modernMeta(this.#capabilities), ...token, ...level };
    return this.#send(modernCall(name, { nonce }, { _meta }));
  }

  #send(message: Frame): RawReply {
    const own = this.#isModern ? mirrored(message) : { "mcp-session-id": this.#session };
    return this.#socket.send(postOf(message, own));
  }

  [Symbol.dispose](): void {
    this.#socket[Symbol.dispose]();
  }
}

interface Wanted {
  readonly upstream: string;
  readonly wantsProgress: boolean;
  readonly wantsLog: boolean;
  readonly mayLog: boolean;
}

function findFaults(reply: RawReply, nonce: string, wanted: Wanted): readonly Fault[] {
  const { messages } = reply;
  const faults: Fault[] = [];
  const add = (kind: Fault["kind"], what: string): void => {
    const text = `${what}: ${nonce} of ${JSON.stringify(wanted)} got ${reply.status} ${JSON.stringify(messages)}`;
    faults.push({ kind, text });
  };
  const responses = messages.filter(({ method }) => method === undefined);
  const [response] = responses;
  const answer = textOf(response);
  const said = (method: string, member: string): readonly unknown[] =>
    messages.filter((message) => message.method === method).map(({ params }) => params?.[member]);
  const progress = said("notifications/progress", "message");
  const logs = said("notifications/message", "data");
  for (const [what, heard] of Object.entries({ answer: [answer], progress, log: logs })) {
    const strangers = heard.filter((said) => said !== undefined && said !== nonce);
    if (strangers.length > 0) add("astray", `${what} of ${JSON.stringify(strangers)}`);
  }
  if (responses.length !== 1 || response?.id !== 1 || answer === undefined)
    add("failed", "there is no single answer");
  if (said("notifications/progress", "progressToken").some((token) => token !== 1))
    add("astray", "a foreign token");
  if (!wanted.wantsProgress && progress.length > 0) add("astray", "progress nobody asked for");
  if (!wanted.mayLog && logs.length > 0) add("astray", "log messages nobody asked for");
  if (wanted.wantsProgress && progress.length < 3) add("lost", `${progress.length} of 3 progress messages`);
  // On a pipe nothing says whose a log message is; over HTTP it comes on the stream of its call.
  const isKnown = wanted.upstream.startsWith("http");
  if (wanted.wantsLog && isKnown && logs.length === 0) add("lost", "its log message");
  return faults;
}

function textOf(message: Message | undefined): string | undefined {
  const { content } = (message?.result ?? {}) as { readonly content?: readonly { readonly text: string }[] };
  return content?.map(({ text }) => text).join("");
}

test(
  `${clients} clients of both eras, all with id 1 and token 1, make ${calls} calls through a gateway: none astray, none hung`,
  { timeout: 900_000 },
  async () => {
    const listener = await listenToGateway();
    const storm = Array.from({ length: clients }, (_, index) => new StormClient(listener.port, index));
    const faults: Fault[] = [];
    let answered = 0;
    const startedAt = performance.now();
    await Promise.all(
      storm.map(async (client) => {
        await client.connect();
        for (let round = 0; round < calls / clients; round++) {
          faults.push(...(await client.call(round)));
          answered++;
        }
      }),
    );
    for (const client of storm) client[Symbol.dispose]();
    const of = (kind: Fault["kind"]): readonly string[] =>
      faults.filter((fault) => fault.kind === kind).map(({ text }) => text);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    const ofAnswers = of("astray").filter((text) => !text.startsWith("log")).length;
    const counts =
      `${of("astray").length} astray (${ofAnswers} answers or progress), ` +
      `${of("failed").length} failed, ${of("lost").length} lost`;
    console.log(`${answered} of ${calls} calls of ${clients} clients answered in ${seconds} s: ${counts}`);
    expect.soft(of("astray").slice(0, 3), "astray").toEqual([]);
    expect.soft(of("failed").slice(0, 3), "failed").toEqual([]);
    expect.soft(of("lost").slice(0, 3), "lost").toEqual([]);
    expect(answered).toBe(calls);
  },
);

test("a log message of one caller's call does not go to another caller that happens to be the only one that asked for a log", async () => {
  const listener = await listenToGateway();
  using asking = new RawSocket(listener.port);
  using silent = new RawSocket(listener.port);
  const logged = { ...modernMeta(), "io.modelcontextprotocol/logLevel": "debug", progressToken: 1 };
  const call = (nonce: string, _meta: object): Frame =>
    modernCall("pipe-legacy__storm", { nonce }, { _meta });
  const send = (socket: RawSocket, frame: Frame): RawReply => socket.send(postOf(frame, mirrored(frame)));
  // A legacy server has one level for everybody: from now on it logs for each call.
  await send(asking, call("first", logged)).complete;
  const strangers: unknown[] = [];
  for (let round = 0; round < 50; round++) {
    const [mine] = await Promise.all([
      send(asking, call("mine", logged)).complete,
      send(silent, call("not yours", modernMeta())).complete,
    ]);
    const heard = mine.messages.flatMap(({ method, params }) =>
      method === "notifications/message" ? [params?.["data"]] : [],
    );
    strangers.push(...heard.filter((data) => data !== "mine"));
  }
  expect(strangers).toEqual([]);
});
