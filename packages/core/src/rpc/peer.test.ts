import { describe, expect, test } from "vitest";
import { createRawWire, type RawWire } from "../../../../test/support/raw-wire.ts";
import { createDeferred, type Deferred } from "../async/queue.ts";
import { ClosedError, RpcError } from "../errors/index.ts";
import { RawJson } from "../json/raw.ts";
import { Peer, type PeerOptions } from "./peer.ts";
import type { Handler, PeerContext } from "./requests.ts";

const ok = RawJson.fromText('"ok"');

interface Joined {
  readonly wire: RawWire;
  readonly peer: Peer;
  readonly ended: Promise<void>;
  /** What the peer reported as dropped. */
  readonly dropped: readonly string[];
  /** Everything the peer sent before it answered one more request. */
  sent(): Promise<readonly string[]>;
}

/** A peer and the far end of its channel. The method `ping` is always answered. */
function join(options: PeerOptions = {}): Joined {
  const wire = createRawWire();
  const dropped: string[] = [];
  const handle: Handler = (request, context) =>
    request.method === "ping" ? Promise.resolve(ok) : (options.handle ?? unknown)(request, context);
  const peer = new Peer(wire.channel, { dropped: (what) => dropped.push(what), ...options, handle });
  const ended = peer.run();
  const sent = async (): Promise<readonly string[]> => {
    await wire.request({ id: "last", method: "ping" });
    return wire.lines.slice(0, -1);
  };
  return { wire, peer, ended, dropped, sent };
}

const unknown: Handler = ({ method }) =>
  Promise.reject(new RpcError("rpc.method_not_found", `Method not found: ${method}`));

/** A handler whose requests end when the test says so. */
function createHeld(): {
  handle: Handler;
  held: Map<string, Deferred<RawJson> & { readonly context: PeerContext }>;
} {
  const held = new Map<string, Deferred<RawJson> & { readonly context: PeerContext }>();
  const handle: Handler = ({ method }, context) => {
    const deferred = createDeferred<RawJson>();
    held.set(method, { ...deferred, context });
    return deferred.promise;
  };
  return { handle, held };
}

function request(id: string | number, method: string): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method });
}

async function arrived(held: ReadonlyMap<string, unknown>, count: number): Promise<void> {
  await expect.poll(() => held.size, { interval: 1 }).toBe(count);
}

describe("requests of the other side", () => {
  test("run at once and are answered as they end", async () => {
    const { handle, held } = createHeld();
    const { wire } = join({ handle });
    ["a", "b", "c"].forEach((method, id) => wire.send(request(id, method)));
    await arrived(held, 3);
    for (const method of ["c", "a", "b"]) {
      held.get(method)?.resolve(RawJson.fromValue(method));
      await expect(wire.take()).resolves.toMatchObject({ result: method });
    }
  });

  test("are answered with ids as they were spelled, and like ones are not taken for each other", async () => {
    const { handle, held } = createHeld();
    const { wire, sent } = join({ handle });
    const ids = ["1", '"1"', "12345678901234567890", "12345678901234567891", '"01"'];
    ids.forEach((id, index) => wire.send(`{"jsonrpc":"2.0","id":${id},"method":"m${index}"}`));
    await arrived(held, ids.length);
    for (const { resolve } of held.values()) resolve(ok);
    expect(await sent()).toEqual(ids.map((id) => `{"jsonrpc":"2.0","id":${id},"result":"ok"}`));
  });

  test("with an id in flight are refused, and the one in flight is answered", async () => {
    const { handle, held } = createHeld();
    const { wire } = join({ handle });
    wire.send(request(1, "first"));
    wire.send(request(1, "second"));
    await expect(wire.take()).resolves.toMatchObject({ id: 1, error: { code: -32600 } });
    expect([...held.keys()]).toEqual(["first"]);
    held.get("first")?.resolve(ok);
    await expect(wire.take()).resolves.toMatchObject({ id: 1, result: "ok" });
  });

  test("may use an id again once its answer was sent", async () => {
    const { wire } = join();
    for (let round = 0; round < 100; round++) {
      await expect(wire.request({ id: 1, method: "ping" })).resolves.toMatchObject({ result: "ok" });
    }
  });

  test("over the limit are refused until one of them ends", async () => {
    const { handle, held } = createHeld();
    const { wire } = join({ handle, maxInFlight: 2 });
    wire.send(request(1, "a"));
    wire.send(request(2, "b"));
    await expect(wire.request({ id: 3, method: "c" })).resolves.toMatchObject({ error: { code: -32603 } });
    held.get("a")?.resolve(ok);
    await wire.take(({ id }) => id === 1);
    await expect(wire.request({ id: 4, method: "ping" })).resolves.toMatchObject({ result: "ok" });
  });

  test("count towards the limit when cancelled, for as long as their handlers ignore that", async () => {
    const { handle, held } = createHeld();
    const { wire } = join({ handle, maxInFlight: 1 });
    wire.send(request(1, "stubborn"));
    wire.send(cancel(1));
    await expect(wire.request({ id: 2, method: "more" })).resolves.toMatchObject({ error: { code: -32603 } });
    held.get("stubborn")?.resolve(ok);
    await expect
      .poll(() => wire.request({ id: 3, method: "ping" }), { interval: 1 })
      .toMatchObject({ result: "ok" });
  });
});

describe("a request that fails", () => {
  test.each([
    ["an unknown error", () => Promise.reject(new Error("secret"))],
    ["something that is not an error", () => Promise.reject("secret")],
    [
      "an error before anything was awaited",
      () => {
        throw new TypeError("secret");
      },
    ],
    ["a result that JSON cannot hold", () => Promise.resolve(RawJson.fromValue({ secret: 1n }))],
    [
      "a result that turns into nothing",
      () => Promise.resolve(RawJson.fromValue({ toJSON: () => ({ s: 1n }) })),
    ],
  ] satisfies readonly [string, Handler][])("by %s is answered -32603 without detail", async (_, handle) => {
    const { wire } = join({ handle });
    const answer = await wire.request({ id: 1, method: "fail" });
    expect(answer.error).toEqual({ code: -32603, message: "Internal error" });
  });

  test("by an RpcError is answered with its code, message and data", async () => {
    const error = new RpcError("rpc.invalid_params", "No such thing", { data: { at: "x" } });
    const { wire } = join({ handle: () => Promise.reject(error) });
    const answer = await wire.request({ id: 1, method: "fail" });
    expect(answer.error).toEqual({ code: -32602, message: "No such thing", data: { at: "x" } });
  });

  test("is answered also when JSON cannot hold its data", async () => {
    const error = new RpcError("rpc.invalid_params", "No such thing", { data: { at: 1n } });
    const { wire } = join({ handle: () => Promise.reject(error) });
    const answer = await wire.request({ id: 1, method: "fail" });
    expect(answer.error).toEqual({ code: -32602, message: "No such thing" });
  });

  test("is an unknown method when nothing handles requests", async () => {
    const wire = createRawWire();
    void new Peer(wire.channel).run();
    await expect(wire.request({ id: 1, method: "x" })).resolves.toMatchObject({ error: { code: -32601 } });
  });
});

describe("cancelling a request of the other side", () => {
  test("aborts exactly that one, and nothing is sent for it any more", async () => {
    const { handle, held } = createHeld();
    const { wire, sent } = join({ handle });
    wire.send(request(1, "a"));
    wire.send(request("1", "b"));
    wire.send(cancel(1));
    await arrived(held, 2);
    const [a, b] = [held.get("a"), held.get("b")];
    await expect.poll(() => a?.context.cancellation.signal.aborted, { interval: 1 }).toBe(true);
    expect(b?.context.cancellation.signal.aborted).toBe(false);
    await a?.context.notify("notifications/progress", RawJson.fromText("{}"));
    a?.resolve(ok);
    b?.resolve(ok);
    expect(await sent()).toEqual(['{"jsonrpc":"2.0","id":"1","result":"ok"}']);
  });

  test("sends nothing for a handler that fails because of it", async () => {
    const { wire, sent } = join({
      handle: (_, { cancellation: { signal } }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    });
    wire.send(request(1, "a"));
    wire.send(cancel(1));
    expect(await sent()).toEqual([]);
  });

  test("frees its id at once", async () => {
    const { handle, held } = createHeld();
    const { wire } = join({ handle });
    wire.send(request(1, "first"));
    wire.send(cancel(1));
    wire.send(request(1, "second"));
    await arrived(held, 2);
    held.get("first")?.resolve(RawJson.fromText('"astray"'));
    held.get("second")?.resolve(ok);
    await expect(wire.take()).resolves.toMatchObject({ id: 1, result: "ok" });
  });

  test.each(["9", '"1"', "null", "{}", "[1]"])("that does not run is ignored: %s", async (id) => {
    const { handle, held } = createHeld();
    const { wire } = join({ handle });
    wire.send(request(1, "a"));
    wire.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`);
    wire.send('{"jsonrpc":"2.0","method":"notifications/cancelled"}');
    await wire.request({ id: 2, method: "ping" });
    expect(held.get("a")?.context.cancellation.signal.aborted).toBe(false);
  });

  test("nothing is notified for a request that was answered", async () => {
    let late: PeerContext | undefined;
    const { wire, sent } = join({
      handle: (_, context) => {
        late = context;
        return Promise.resolve(ok);
      },
    });
    await wire.request({ id: 1, method: "a" });
    await late?.notify("notifications/progress", RawJson.fromText("{}"));
    expect(await sent()).toHaveLength(1);
  });
});

describe("requests of our own", () => {
  test("get their own answers, in whatever order those come", async () => {
    const { wire, peer } = join();
    const results = ["a", "b", "c"].map((method) => peer.request(method));
    const asked = [await wire.take(), await wire.take(), await wire.take()];
    for (const { id, method } of asked.toReversed()) wire.send({ jsonrpc: "2.0", id, result: method });
    const values = (await Promise.all(results)).map((result) => result.value);
    expect(values).toEqual(["a", "b", "c"]);
  });

  test("that are refused reject with the error of the other side", async () => {
    const { wire, peer } = join();
    const result = peer.request("a");
    const { id } = await wire.take();
    wire.send({ jsonrpc: "2.0", id, error: { code: -1, message: "no", data: [1] } });
    await expect(result).rejects.toMatchObject({ name: "RpcError", rpcCode: -1, message: "no", data: [1] });
  });

  test("that are aborted reject at once, tell the other side, and drop a late answer", async () => {
    const { wire, peer, dropped } = join();
    const controller = new AbortController();
    const result = peer.request("a", undefined, { signal: controller.signal });
    const { id } = await wire.take();
    controller.abort(new Error("changed my mind"));
    await expect(result).rejects.toThrow("changed my mind");
    await expect(wire.take()).resolves.toEqual({
      jsonrpc: "2.0",
      method: "notifications/cancelled",
      params: { requestId: id },
    });
    wire.send({ jsonrpc: "2.0", id, result: "late" });
    await wire.request({ id: 1, method: "ping" });
    expect(dropped).toEqual([expect.stringContaining("a response to no request")]);
  });

  test("that are aborted before they began send nothing", async () => {
    const { peer, sent } = join();
    await expect(
      peer.request("a", undefined, { signal: AbortSignal.abort(new Error("too late")) }),
    ).rejects.toThrow("too late");
    expect(await sent()).toEqual([]);
  });

  test("fail with an unknown outcome when the channel ends, and are not sent after that", async () => {
    const { wire, peer, ended } = join();
    const result = peer.request("a");
    await wire.take();
    wire.end();
    await expect(result).rejects.toMatchObject({ name: "ClosedError", delivery: "outcome_unknown" });
    await ended;
    await expect(peer.request("b")).rejects.toMatchObject({ name: "ClosedError", delivery: "not_sent" });
  });

  test.each([
    '{"jsonrpc":"2.0","id":999,"result":1}',
    '{"jsonrpc":"2.0","id":"1","result":1}',
    '{"jsonrpc":"2.0","error":{"code":-32700,"message":"?"}}',
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}',
    '{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}',
    '{"jsonrpc":"2.0","result":1}',
  ])("are not answered by %s, which is dropped without an answer", async (line) => {
    const { wire, peer, dropped, sent } = join();
    const result = peer.request("a");
    await wire.take();
    wire.send(line);
    expect(await sent()).toHaveLength(1);
    expect(dropped).toHaveLength(1);
    wire.send({ jsonrpc: "2.0", id: 1, result: "right" });
    expect((await result).value).toBe("right");
  });
});

describe("notifications", () => {
  test.each([
    '{"jsonrpc":"2.0","method":"notifications/unknown"}',
    '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}',
    '{"jsonrpc":"2.0","method":"x","params":[]}',
    '{"jsonrpc":"2.0","method":"x","Params":{}}',
    '{"jsonrpc":"2.0","method":"x","method":"y"}',
    '{"jsonrpc":"1.0","method":"x"}',
  ])("are never answered: %s", async (line) => {
    const { wire, sent } = join();
    wire.send(line);
    expect(await sent()).toEqual([]);
  });
});

describe("a batch", () => {
  const acceptsBatch = (): boolean => true;

  test("is refused with one error where batches do not exist", async () => {
    const { wire, sent } = join();
    wire.send(`[${request(1, "ping")},${request(2, "ping")}]`);
    const [line, ...more] = await sent();
    expect(JSON.parse(line ?? "")).toMatchObject({ error: { code: -32600 } });
    expect(more).toEqual([]);
  });

  test("is answered by one array, without its notifications and responses", async () => {
    const { wire, sent } = join({ acceptsBatch });
    const notification = '{"jsonrpc":"2.0","method":"n"}';
    const response = '{"jsonrpc":"2.0","id":5,"result":1}';
    wire.send(`[${request(1, "ping")},${notification},7,${response},${request("2", "nope")}]`);
    const answers = await wire.take();
    expect(await sent()).toHaveLength(1);
    expect(answers).toHaveLength(3);
    expect(answers).toEqual(
      expect.arrayContaining([
        { jsonrpc: "2.0", id: 1, result: "ok" },
        { jsonrpc: "2.0", id: "2", error: { code: -32601, message: "Method not found: nope" } },
        { jsonrpc: "2.0", error: expect.objectContaining({ code: -32600 }) as unknown },
      ]),
    );
  });

  test("of notifications alone is not answered", async () => {
    const { wire, sent } = join({ acceptsBatch });
    wire.send('[{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","method":"x","params":[]}]');
    expect(await sent()).toEqual([]);
  });

  test("is answered without the requests that were cancelled", async () => {
    const { handle, held } = createHeld();
    const { wire } = join({ acceptsBatch, handle });
    wire.send(`[${request(1, "a")},${request(2, "b")}]`);
    wire.send(cancel(1));
    await arrived(held, 2);
    held.get("a")?.resolve(ok);
    held.get("b")?.resolve(ok);
    await expect(wire.take()).resolves.toEqual([{ jsonrpc: "2.0", id: 2, result: "ok" }]);
  });

  test("with one id twice is refused, because its answers could not be told apart", async () => {
    const { wire } = join({ acceptsBatch });
    wire.send(`[${request(1, "ping")},${request(1, "ping")}]`);
    await expect(wire.take()).resolves.toMatchObject({ error: { code: -32600 } });
  });

  test.each(["[]", `[${Array.from({ length: 129 }, (_, id) => request(id, "ping")).join(",")}]`])(
    "that is empty or over the limit gets one error",
    async (line) => {
      const { wire } = join({ acceptsBatch });
      wire.send(line);
      await expect(wire.take()).resolves.toMatchObject({ error: { code: -32600 } });
    },
  );
});

describe("ending", () => {
  test("a request whose caller cannot be notified any more is aborted", async () => {
    const { handle, held } = createHeld();
    const { wire } = join({ handle });
    wire.send(request(1, "a"));
    await arrived(held, 1);
    const { context } = held.get("a") as { context: PeerContext };
    await wire.channel[Symbol.asyncDispose]();
    await context.notify("notifications/progress", RawJson.fromText("{}"));
    expect(context.cancellation.signal.reason).toBeInstanceOf(ClosedError);
  });

  test("what runs goes on when the input ends, until it is aborted", async () => {
    const { handle, held } = createHeld();
    const { wire, peer, ended } = join({ handle });
    wire.send(request(1, "quick"));
    wire.send(request(2, "slow"));
    wire.end();
    await ended;
    held.get("quick")?.resolve(ok);
    await expect(wire.take()).resolves.toMatchObject({ id: 1 });
    peer.abort();
    expect(held.get("slow")?.context.cancellation.signal.reason).toBeInstanceOf(ClosedError);
    held.get("slow")?.resolve(ok);
    await peer.idle();
    expect(wire.lines).toHaveLength(1);
  });

  test("input that is not JSON is answered with the code of the dialect", async () => {
    const { wire } = join({ parseErrorCode: -32600 });
    wire.send("{");
    await expect(wire.take()).resolves.toMatchObject({ error: { code: -32600 } });
  });
});

function cancel(requestId: string | number): string {
  return JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } });
}
