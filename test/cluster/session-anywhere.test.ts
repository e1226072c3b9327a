// A legacy session at three replicas: every request goes to another one, and the client notices nothing.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { HttpWire, initializeOf, legacyCall, postOf } from "../support/http-wire.ts";
import { exchange, type Message, RawSocket } from "../support/raw-http.ts";
import type { Frame } from "../support/wire-schema.ts";
import { createToldServer, statefulServer, type ToldServer } from "./support/servers.ts";
import { isSkipped } from "./support/skip.ts";
import { type Stage, startStage } from "./support/stage.ts";

const revision = "2025-11-25";
const capabilities = { elicitation: {} };
const progressToken = { progressToken: "t" };
const request = (id: number, method: string, params: object = {}): Frame => ({
  jsonrpc: "2.0",
  id,
  method,
  params,
});
const textOf = ({ result }: Message): string | undefined =>
  (result as { readonly content?: readonly { readonly text?: string }[] } | undefined)?.content?.[0]?.text;

describe.skipIf(isSkipped)("a legacy session at three replicas", () => {
  let stage: Stage;
  let told: ToldServer;
  let wire: HttpWire;
  let ports: readonly number[];
  let nonces = 0;
  let nonce: string;

  beforeAll(async () => {
    told = createToldServer("legacy");
    stage = await startStage({ mcpServers: { up: told.entry, store: statefulServer } });
    ports = stage.replicas.map(({ port }) => port);
  });
  afterAll(async () => {
    await stage?.[Symbol.asyncDispose]();
    told?.[Symbol.dispose]();
  });
  beforeEach(async () => {
    nonce = `n${++nonces}`;
    wire = new HttpWire(ports[0]!, revision);
    await wire.initialize(capabilities);
  });
  afterEach(() => wire[Symbol.dispose]());

  /** The same session, from now on at another replica. */
  const at = (replica: 0 | 1 | 2): HttpWire => {
    wire.port = ports[replica]!;
    return wire;
  };

  test("calls a shared server from each of them, and that is one process", async () => {
    const answers: Message[] = [];
    for (const index of [0, 1, 2, 0, 1, 2] as const)
      answers.push(await at(index).ask(legacyCall(10 + answers.length, "store__count")));
    const facts = answers.map(
      ({ result }) => result?.["structuredContent"] as { calls: number; pid: number },
    );
    expect(facts.map(({ calls }) => calls)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(new Set(facts.map(({ pid }) => pid)).size).toBe(1);
  });

  test("has one level for its log, wherever it is set", async () => {
    const chat = async (id: number): Promise<readonly (string | undefined)[]> => {
      const reply = await (await at(2).post(legacyCall(id, "up__chat", { nonce }))).complete;
      return reply.messages.map(({ method }) => method);
    };
    await at(1).ask(request(2, "logging/setLevel", { level: "error" }));
    expect(await chat(3)).toEqual([undefined]);
    await at(0).ask(request(4, "logging/setLevel", { level: "info" }));
    expect(await chat(5)).toEqual(["notifications/message", undefined]);
  });

  test("subscribes at one, and is notified on its stream at another", async () => {
    const stream = await at(0).get().reply.head;
    expect(stream.status).toBe(200);
    const done = await at(1).ask(request(2, "resources/subscribe", { uri: "note://today" }));
    expect(done.error).toBeUndefined();
    told.tell("touch", nonce);
    await stream.until("the update came", ({ messages }) =>
      messages.some(({ method }) => method === "notifications/resources/updated"),
    );
  });

  test("has one stream of its own, and a second one is refused by any of them", async () => {
    const stream = await at(1).get().reply.head;
    expect(stream.status).toBe(200);
    for (const index of [0, 1, 2] as const) expect((await at(index).get().reply.head).status).toBe(409);
  });

  test.each([0, 1, 2] as const)("answers a question at replica %i that another one asked", async (index) => {
    const called = at(0).open(legacyCall(5, "up__greet", { nonce })).reply;
    const question = await called.message(1);
    expect(question.method).toBe("elicitation/create");
    const result = { action: "accept", content: { name: `Ada ${nonce}` } };
    const accepted = await (await at(index).post({ jsonrpc: "2.0", id: question.id!, result })).complete;
    expect(accepted.status).toBe(202);
    expect(textOf((await called.complete).messages.at(-1)!)).toBe(`Ada ${nonce}`);
    expect(told.count("run", nonce)).toBe(1);
  });

  test("cancels a call at another replica", async () => {
    const { reply } = at(0).open(legacyCall(5, "up__hold", { nonce }, progressToken));
    await expect.poll(() => told.count("run", nonce)).toBe(1);
    const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 5 } };
    expect((await (await at(1).post(cancel)).complete).status).toBe(202);
    await expect.poll(() => told.count("cancelled", nonce)).toBe(1);
    expect(reply.messages.filter(({ id }) => id === 5)).toEqual([]);
  });

  test("goes on with a broken stream at another replica, and loses nothing", async () => {
    const { reply, socket } = at(0).open(legacyCall(5, "up__recite", { nonce }, progressToken));
    await reply.message(1);
    socket.cut();
    const rest = at(2).get(reply.events.findLast(({ id }) => id !== undefined)?.id).reply;
    expect((await rest.head).status).toBe(200);
    told.tell("go", nonce);
    await rest.until("the result came", ({ messages }) => messages.some(({ id }) => id === 5));
    expect(textOf(rest.messages.at(-1)!)).toBe(`one ${nonce} two`);
    expect([...reply.messages, ...rest.messages].map(({ params }) => params?.["message"])).toEqual([
      `one ${nonce} `,
      "two",
      undefined,
    ]);
  });

  test("that is deleted at one is unknown to all", async () => {
    expect((await at(1).delete()).status).toBeLessThan(300);
    for (const index of [2, 0, 1] as const)
      expect((await at(index).post(request(9, "ping"))).status).toBe(404);
  });

  test("that runs from one replica to the next by the balancer is served", async () => {
    wire.port = stage.balancer.port;
    const pids = new Set<unknown>();
    for (let id = 20; id < 32; id++) {
      const { result } = await wire.ask(legacyCall(id, "store__count"));
      const { pid } = result!["structuredContent"] as { readonly pid: number };
      pids.add(pid);
    }
    expect(pids.size).toBe(1);
  });

  test("of 2024-11-05 posts to one what another answers on its stream", async () => {
    using socket = new RawSocket(ports[0]!);
    const headers = [["accept", "text/event-stream"]] as const;
    const stream = socket.send({ method: "GET", path: "/sse", headers });
    const path = (await stream.event(1)).data!;
    const post = async (index: number, message: object): Promise<number> =>
      (await exchange(ports[index]!, { ...postOf(message), path })).status;
    const answer = async (id: number): Promise<Message> => {
      const frames = (): readonly Message[] =>
        stream.events.slice(1).map(({ data }) => JSON.parse(data!) as Message);
      await stream.until("it was answered", () => frames().some((frame) => frame.id === id));
      return frames().find((frame) => frame.id === id)!;
    };
    expect(await post(1, initializeOf("2024-11-05"))).toBe(202);
    await answer(0);
    await post(2, { jsonrpc: "2.0", method: "notifications/initialized" });
    expect(await post(2, legacyCall(1, "up__echo", { nonce }))).toBe(202);
    expect(textOf(await answer(1))).toBe(nonce);
  });
});
