import { Buffer } from "node:buffer";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { connectInMemory, createMemoryPair } from "../../packages/core/src/channel/memory.ts";
import { createStreamChannel } from "../../packages/core/src/channel/stream-channel.ts";
import { compose } from "../../packages/core/src/compose/compose.ts";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import { joinJson } from "../../packages/core/src/json/splice.ts";
import { fromDefinition } from "../../packages/core/src/mcp/definition.ts";
import { metaKeys } from "../../packages/core/src/mcp/params.ts";
import type { Server } from "../../packages/core/src/mcp/server.ts";
import type { Provider } from "../../packages/core/src/provider/provider.ts";
import type { Channel } from "../../packages/core/src/rpc/channel.ts";
import { Peer } from "../../packages/core/src/rpc/peer.ts";
import { serveStream } from "../../packages/server/src/listen/tcp.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { seededJsonTexts } from "../support/arbitrary-json.ts";
import { toProvider } from "../support/use-provider.ts";
import { initialize } from "./line-client.ts";

/** Set SEED to replay a run; a failure prints the seed and the document. */
const seed = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const inFlight = 200;

/** One document on its way: what is sent as arguments, and what the other end answers. */
interface Parcel {
  readonly arguments: string;
  readonly result: string;
}

/** What another server answers, by the number in the arguments; and what it was sent, as it came. */
class OtherServer {
  readonly parcels = new Map<number, Parcel>();
  readonly received = new Map<number, string>();

  handle(params: RawJson | undefined): RawJson {
    const args = params?.at("arguments");
    const number = args?.at("number")?.value as number;
    this.received.set(number, Buffer.from(args?.bytes ?? []).toString());
    return RawJson.parse(Buffer.from(this.parcels.get(number)?.result ?? "{}"));
  }
}

/** A provider that has its tools on another channel: it puts in its own name and id, and leaves the rest alone. */
function createForwarder(peer: Peer): Provider {
  const definition = RawJson.parse(Buffer.from('{"name":"any","inputSchema":{"type":"object"}}'));
  const tools = Object.freeze([
    fromDefinition<{ name: string; inputSchema: { type: "object" } }>(definition),
  ]);
  return toProvider(tools, async ({ name, arguments: args }, { signal }) => {
    const params = joinJson([`{"name":${JSON.stringify(name)},"arguments":`, args, "}"]);
    return { kind: "complete", result: await peer.request("tools/call", params, { signal }) };
  });
}

function createGateway(other: OtherServer): Server {
  const [near, far] = createMemoryPair();
  const peer = new Peer(near);
  void peer.run();
  void new Peer(far, { handle: async ({ params }) => other.handle(params) }).run();
  return createServer(compose({ up: createForwarder(peer) }), { name: "gateway", version: "1" });
}

const claims = JSON.stringify({
  [metaKeys.protocolVersion]: "2026-07-28",
  [metaKeys.clientCapabilities]: {},
});
const eras = { legacy: "", modern: `"_meta":${claims},` } as const;

/** Sends every document there and back, in both eras on one channel, and compares bytes at each end. */
async function forwardAll(channel: Channel, other: OtherServer, texts: Iterable<string>): Promise<number> {
  const client = new Peer(channel);
  void client.run();
  await client.request("initialize", RawJson.fromValue(initialize.params));

  const forward = async (number: number, text: string): Promise<void> => {
    const parcel = {
      arguments: `{"number":${number}, "value" :${text}}`,
      result: `{"content":[],"structuredContent":{"value":${text}} , "isError":false}`,
    };
    other.parcels.set(number, parcel);
    const era = number % 2 === 0 ? "legacy" : "modern";
    const params = RawJson.parse(
      Buffer.from(`{${eras[era]} "name":"up__any","arguments":${parcel.arguments}}`),
    );
    const result = Buffer.from((await client.request("tools/call", params)).bytes).toString();
    const isSame =
      other.received.get(number) === parcel.arguments &&
      // A modern result has members of the server's own in front.
      (era === "legacy" ? result === parcel.result : result.endsWith(`,${parcel.result.slice(1)}`));
    if (!isSame) {
      const received = other.received.get(number);
      expect.fail(
        `seed ${seed}, document ${number}, ${era}: ${JSON.stringify({ parcel, received, result })}`,
      );
    }
    other.parcels.delete(number);
    other.received.delete(number);
  };

  let count = 0;
  let wave: Promise<void>[] = [];
  for (const text of texts) {
    wave.push(forward(count++, text));
    if (wave.length === inFlight) {
      await Promise.all(wave);
      wave = [];
    }
  }
  await Promise.all(wave);
  return count;
}

test(`100,000 documents pass a composite and a forwarding provider byte for byte (seed ${seed})`, async () => {
  const other = new OtherServer();
  await using channel = connectInMemory(createGateway(other));
  expect(await forwardAll(channel, other, seededJsonTexts(seed, 100_000))).toBe(100_000);
});

test(`5,000 documents do so over byte streams, where a line holds no line end (seed ${seed})`, async () => {
  const other = new OtherServer();
  const [toServer, toClient] = [new PassThrough(), new PassThrough()];
  const served = serveStream(createGateway(other), toServer, toClient);
  const channel = createStreamChannel(toClient, toServer);
  const texts = Array.from(seededJsonTexts(seed, 5_000), (text) => text.replaceAll(/[\r\n]/g, " "));
  expect(await forwardAll(channel, other, texts)).toBe(5_000);
  await channel[Symbol.asyncDispose]();
  await served;
});

test.each([
  ["beyond 2^53", "12345678901234567890"],
  ["a float that is whole", "1.0"],
  ["minus zero", "-0"],
  ["no double", "1e400"],
  ["the order of keys", '{"b":1,"10":2,"a":3,"2":4}'],
  ["a key twice", '{"a":1,"a":2}'],
  ["escapes nobody needs", '"\\u0041\\/\\u00e9"'],
  ["half a surrogate pair", '"\\ud800"'],
  ["white space", " [ 1 ,\t2 ,\r\n3 ] "],
  ["__proto__", '{"__proto__":{"polluted":true}}'],
])("%s arrives as it was sent: %j", async (_, text) => {
  const other = new OtherServer();
  await using channel = connectInMemory(createGateway(other));
  expect(await forwardAll(channel, other, [text, text])).toBe(2);
});
