import { describe, expect, test } from "vitest";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import type { Channel, Incoming } from "../../packages/core/src/rpc/channel.ts";
import type { Message, Notification } from "../../packages/core/src/rpc/message.ts";
import { standsStill } from "./stands-still.ts";

/** Two joined ends of one kind of channel. */
export interface Ends extends AsyncDisposable {
  readonly left: Channel;
  readonly right: Channel;
  /** Takes the right end away without a goodbye, as a crash does. */
  vanish(): void;
}

/** What every channel does, whatever it is made of. A reader that stalls may hold up closing for `closeMs`. */
export function describeChannel(kind: string, open: (closeMs: number) => Promise<Ends> | Ends): void {
  describe(`a channel over ${kind}`, () => {
    test("brings messages in the order they were sent, both ways at once", async () => {
      await using ends = await open(5000);
      const count = 500;
      const send = (channel: Channel): Promise<unknown> =>
        Promise.all(Array.from({ length: count }, (_, index) => channel.send(numbered(index, index % 50))));
      const [atRight, atLeft] = await Promise.all([
        receive(ends.right, count),
        receive(ends.left, count),
        send(ends.left),
        send(ends.right),
      ]);
      const order = Array.from({ length: count }, (_, index) => index);
      expect(atRight.map(numberOf)).toEqual(order);
      expect(atLeft.map(numberOf)).toEqual(order);
    });

    test("brings what was sent, byte for byte, but for line breaks between tokens", async () => {
      await using ends = await open(5000);
      const params = RawJson.parse(
        Buffer.from('{"n": 12345678901234567890,\r\n"é日😀":"\u2028\\n","f":[1.0,-0,1e400]}'),
      );
      await ends.left.send({ kind: "notification", method: "m", params });
      const [message] = await receive(ends.right, 1);
      expect((message as Notification).params?.text.replaceAll(/[\r\n]/g, " ")).toBe(
        '{"n": 12345678901234567890,  "é日😀":"\u2028\\n","f":[1.0,-0,1e400]}',
      );
    });

    test("brings several messages in one batch", async () => {
      await using ends = await open(5000);
      await ends.left.send([numbered(1), numbered(2)]);
      await expect(receive(ends.right, 1)).resolves.toMatchObject([{ kind: "batch", items: { length: 2 } }]);
    });

    test("brings a message of a megabyte", async () => {
      await using ends = await open(5000);
      const [[message]] = await Promise.all([
        receive(ends.right, 1),
        ends.left.send(numbered(7, 1024 * 1024)),
      ]);
      expect(message && numberOf(message)).toBe(7);
    });

    test("holds up a sender while its reader stalls, and loses nothing", async () => {
      await using ends = await open(5000);
      const count = 400;
      let taken = 0;
      const sending = (async () => {
        for (; taken < count; taken++) await ends.left.send(numbered(taken, 64 * 1024));
      })();
      await standsStill(() => taken);
      expect(taken).toBeLessThan(count * 0.75);
      const received = await receive(ends.right, count);
      await sending;
      expect(received.map(numberOf)).toEqual(Array.from({ length: count }, (_, index) => index));
    });

    test("refuses to send once it is disposed, and says that nothing was sent", async () => {
      await using ends = await open(5000);
      await ends.left[Symbol.asyncDispose]();
      await expect(ends.left.send(numbered(1))).rejects.toMatchObject({
        name: "ClosedError",
        delivery: "not_sent",
      });
    });

    test("brings what was sent before it was disposed", async () => {
      await using ends = await open(5000);
      const received = receive(ends.right, Number.POSITIVE_INFINITY);
      const sent = [1, 2, 3].map((index) => ends.left.send(numbered(index)));
      await Promise.all(sent);
      await ends.left[Symbol.asyncDispose]();
      expect((await received).map(numberOf)).toEqual([1, 2, 3]);
    });

    test("ends its iteration, and that of the other end, when it is disposed", async () => {
      await using ends = await open(5000);
      const received = [ends.left, ends.right].map((end) => receive(end, Number.POSITIVE_INFINITY));
      await ends.left[Symbol.asyncDispose]();
      await expect(Promise.all(received)).resolves.toEqual([[], []]);
    });

    test("may be disposed any number of times, at once too", async () => {
      await using ends = await open(5000);
      await Promise.all([ends.left[Symbol.asyncDispose](), ends.left[Symbol.asyncDispose]()]);
      await expect(ends.left[Symbol.asyncDispose]()).resolves.toBeUndefined();
    });

    test("is disposed in time though its reader stalls, and settles every send", async () => {
      await using ends = await open(50);
      const sent = Array.from({ length: 400 }, (_, index) => ends.left.send(numbered(index, 64 * 1024)));
      const settled = Promise.allSettled(sent);
      await ends.left[Symbol.asyncDispose]();
      expect((await settled).every(isSettledWell)).toBe(true);
    });

    test("ends cleanly when the other end vanishes", async () => {
      await using ends = await open(50);
      const received = receive(ends.left, Number.POSITIVE_INFINITY);
      const sent = Array.from({ length: 100 }, (_, index) => ends.left.send(numbered(index, 64 * 1024)));
      ends.vanish();
      expect((await Promise.allSettled(sent)).every(isSettledWell)).toBe(true);
      await expect(received).resolves.toEqual([]);
      await expect
        .poll(() => ends.left.send(numbered(1)).catch((error: unknown) => error))
        .toBeInstanceOf(Error);
      await expect(ends.left.send(numbered(1))).rejects.toMatchObject({
        name: "ClosedError",
        delivery: "not_sent",
      });
    });
  });
}

function numbered(number: number, padding = 0): Message {
  const params = RawJson.fromValue({ number, padding: "x".repeat(padding) });
  return { kind: "notification", method: "n", params };
}

function numberOf(incoming: Incoming): unknown {
  return (incoming as Notification).params?.at("number")?.value;
}

/** Reads so many messages, or all there are. Does not leave the iteration, which would end the channel. */
async function receive(channel: Channel, count: number): Promise<readonly Incoming[]> {
  const iterator = channel[Symbol.asyncIterator]();
  const received: Incoming[] = [];
  while (received.length < count) {
    const step = await iterator.next();
    if (step.done === true) break;
    received.push(...step.value);
  }
  return received;
}

function isSettledWell(result: PromiseSettledResult<void>): boolean {
  return result.status === "fulfilled" || (result.reason as Error).name === "ClosedError";
}
