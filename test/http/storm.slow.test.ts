import { expect, test } from "vitest";
import { listRoots } from "../../packages/core/src/mcp/question.ts";
import { inputRequired } from "../../packages/core/src/provider/content.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { initializeOf, legacyCall, mirrored, modernCall, modernMeta, postOf } from "../support/http-wire.ts";
import { type Message, type RawReply, RawSocket } from "../support/raw-http.ts";
import type { Frame } from "../support/wire-schema.ts";

// CVE-2026-25536 and its kin: ids start at the same number in every client, and answers went to the wrong one. Every
// call carries a nonce, and whatever comes back for it must carry the same one and the name of its own caller.

const clients = 1000;
const calls = Number(process.env["JUNCTOR_STORM_CALLS"] ?? 10_000);
const legacyRevisions = ["2025-03-26", "2025-06-18", "2025-11-25"] as const;

function listenToStorm(): Promise<HttpListener> {
  const registry = createRegistry();
  const nonce = { type: "object", properties: { nonce: { type: "string" } }, required: ["nonce"] };
  registry.register("echo", { input: nonce }, ({ nonce }, { caller }) => `${caller} ${String(nonce)}`);
  registry.register("stream", { input: nonce }, async function* ({ nonce }, { caller }) {
    for (let index = 0; index < 3; index++) yield `${caller} ${String(nonce)} `;
  });
  registry.register("ask", { input: nonce }, ({ nonce }, { answers, caller }) => {
    const roots = answers.roots("roots");
    return roots === undefined
      ? inputRequired({ roots: listRoots() }, nonce)
      : `${caller} ${String(nonce)} ${roots.map(({ uri }) => uri).join()}`;
  });
  const server = createServer(registry, { name: "storm", version: "1.0.0" });
  const authenticate = (header: (name: string) => string | undefined): string | undefined =>
    header("x-caller");
  return listenHttp(server, { port: 0, authenticate, responses: "auto" });
}

/** One of many: a socket of its own, and `id: 1` for everything. */
class StormClient implements Disposable {
  readonly #main: RawSocket;
  /** For answers to questions, while the call's own socket waits. */
  #side: RawSocket | undefined;
  readonly #port: number;
  readonly #caller: string;
  readonly #index: number;
  readonly #isModern: boolean;
  #session: string | undefined;

  constructor(port: number, index: number) {
    this.#main = new RawSocket(port);
    this.#port = port;
    this.#index = index;
    this.#caller = `caller-${index % 7}`;
    this.#isModern = index % 2 === 0;
  }

  async connect(): Promise<void> {
    if (this.#isModern) return;
    const revision = legacyRevisions[this.#index % legacyRevisions.length]!;
    const reply = await this.#send(this.#main, initializeOf(revision, { roots: {} }, 1)).complete;
    this.#session = reply.headers["mcp-session-id"]!;
  }

  /** Makes one call and gives back what was wrong with its answer, if anything. */
  async call(round: number): Promise<string | undefined> {
    const nonce = `${this.#index}/${round}/${Math.random()}`;
    const kind = (["echo", "echo", "echo", "stream", "ask"] as const)[(round + this.#index) % 5]!;
    const mine = `${this.#caller} ${nonce}`;
    const reply = this.#isModern ? await this.#callModern(kind, nonce) : await this.#callLegacy(kind, nonce);
    const expected = { echo: mine, stream: `${mine} ${mine} ${mine} `, ask: `${mine} file:///${nonce}` }[
      kind
    ];
    const { messages } = reply;
    const last = messages.at(-1);
    const heard = messages.flatMap(({ params }) => params?.["message"] ?? []);
    const text = textOf(last);
    const isMine = reply.status === 200 && last?.id === 1 && text === expected && reply.isComplete;
    const isStreamMine =
      heard.every((piece) => piece === `${mine} `) && heard.length === (kind === "stream" ? 3 : 0);
    if (isMine && isStreamMine) return undefined;
    return `${this.#caller} asked ${kind} ${nonce} and got ${reply.status} ${JSON.stringify(messages)}`;
  }

  async #callModern(kind: string, nonce: string): Promise<RawReply> {
    const _meta = { ...modernMeta({ roots: {} }), ...(kind === "stream" ? { progressToken: 1 } : {}) };
    const call = modernCall(kind, { nonce }, { _meta });
    const reply = await this.#send(this.#main, call).complete;
    const { requestState } = (reply.messages.at(-1)?.result ?? {}) as { readonly requestState?: string };
    if (requestState === undefined) return reply;
    const inputResponses = { roots: { roots: [{ uri: `file:///${nonce}` }] } };
    const retry = modernCall(kind, { nonce }, { _meta, requestState, inputResponses });
    return this.#send(this.#main, retry).complete;
  }

  async #callLegacy(kind: string, nonce: string): Promise<RawReply> {
    const meta = kind === "stream" ? { progressToken: 1 } : {};
    const reply = this.#send(this.#main, legacyCall(1, kind, { nonce }, meta));
    if (kind === "ask") {
      const isAsk = ({ method }: Message): boolean => method === "roots/list";
      await reply.until("it was asked", ({ messages }) => messages.some(isAsk));
      const { id } = reply.messages.find(isAsk)!;
      const result = { roots: [{ uri: `file:///${nonce}` }] };
      this.#side ??= new RawSocket(this.#port);
      await this.#send(this.#side, { jsonrpc: "2.0", id: id!, result }).complete;
    }
    return reply.complete;
  }

  #send(socket: RawSocket, message: Frame): RawReply {
    const own = this.#isModern ? mirrored(message) : { "mcp-session-id": this.#session };
    return socket.send(postOf(message, { ...own, "x-caller": this.#caller }));
  }

  [Symbol.dispose](): void {
    this.#main[Symbol.dispose]();
    this.#side?.[Symbol.dispose]();
  }
}

function textOf(message: Message | undefined): string | undefined {
  const { content } = (message?.result ?? {}) as { readonly content?: readonly { readonly text: string }[] };
  return content?.map(({ text }) => text).join("");
}

test(
  `${clients} clients of both eras, all with id 1, make ${calls} calls: none astray, none hung`,
  { timeout: 900_000 },
  async () => {
    await using listener = await listenToStorm();
    const storm = Array.from({ length: clients }, (_, index) => new StormClient(listener.port, index));
    const astray: string[] = [];
    let answered = 0;
    const rounds = calls / clients;
    await Promise.all(
      storm.map(async (client) => {
        await client.connect();
        for (let round = 0; round < rounds; round++) {
          const fault = await client.call(round);
          if (fault !== undefined) astray.push(fault);
          answered++;
        }
      }),
    );
    expect(astray.slice(0, 5)).toEqual([]);
    expect(answered).toBe(calls);
    for (const client of storm) client[Symbol.dispose]();
  },
);
