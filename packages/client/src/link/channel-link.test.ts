import { describe, expect, test } from "vitest";
import { LazyAbort } from "../../../core/src/async/deadline.ts";
import { createDeferred } from "../../../core/src/async/queue.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import type { Channel, Incoming } from "../../../core/src/rpc/channel.ts";
import { parseMessage } from "../../../core/src/rpc/parse.ts";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { createChannelLink } from "./channel-link.ts";

/** A server that says what it is told to, a step at a time, and a link to it. */
function createTalk(gone?: Promise<void>): {
  readonly clock: ReturnType<typeof createVirtualClock>;
  readonly link: ReturnType<typeof createChannelLink>;
  /** How many notifications were heard. */
  readonly heard: () => number;
  /** How many steps were asked for. */
  readonly read: () => number;
  say(...steps: readonly (readonly string[])[]): Promise<void>;
} {
  const clock = createVirtualClock(1_000_000);
  const steps: (readonly Incoming[])[] = [];
  let wake: () => void = () => {};
  let isOver = false;
  let heard = 0;
  let read = 0;
  const channel: Channel = {
    send: () => Promise.resolve(),
    [Symbol.asyncIterator]: async function* () {
      for (;;) {
        const step = steps.shift();
        if (step !== undefined) {
          read++;
          yield step;
        } else if (isOver) return;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    },
    [Symbol.asyncDispose]: () => {
      isOver = true;
      wake();
      return Promise.resolve();
    },
  };
  const events = { notified: () => void heard++, asked: () => Promise.resolve(RawJson.fromText("{}")) };
  const link = createChannelLink(channel, {
    target: "it",
    events,
    clock,
    ...(gone === undefined ? {} : { gone }),
  });
  return {
    clock,
    link,
    heard: () => heard,
    read: () => read,
    say: async (...said) => {
      for (const lines of said) steps.push(lines.map((line) => parseMessage(Buffer.from(line))));
      wake();
      await clock.advance(0);
    },
  };
}

const note = '{"jsonrpc":"2.0","method":"notifications/message","params":{}}';
const ping = '{"jsonrpc":"2.0","id":"again","method":"ping"}';
const times = (count: number, line: string): readonly string[] => Array.from({ length: count }, () => line);
const answer = (id: number): string => `{"jsonrpc":"2.0","id":${id},"result":{}}`;
const ask = ({ request }: ReturnType<typeof createChannelLink>): Promise<RawJson> =>
  request({ method: "ping", params: undefined, stop: new LazyAbort() });

describe("a server that says", () => {
  test("much at once is heard at once", async () => {
    const { say, heard, clock } = createTalk();
    await say(times(1900, note));
    expect(heard()).toBe(1900);
    expect(clock.sleeping).toBe(0);
  });

  test("too much is not read from for a while, and nothing of it is lost", async () => {
    const { say, heard, read, clock } = createTalk();
    await say(times(1900, note), times(1000, note), times(10, note));
    expect(read()).toBe(2);
    expect(heard()).toBe(1905);
    await clock.advance(225);
    expect(heard()).toBeGreaterThan(2300);
    expect(heard()).toBeLessThan(2600);
    await clock.advance(250);
    expect(read()).toBe(3);
    expect(heard()).toBe(2910);
  });

  test("too many requests is heard a few at a time, and as late as they cost", async () => {
    const { say, heard, clock } = createTalk();
    const pair = (count: number): readonly string[] => times(count, "").flatMap(() => [ping, note]);
    await say(pair(95), pair(100));
    const startedAt = clock.now();
    let most = 0;
    for (let before = heard(); heard() < 195; before = heard()) {
      await clock.advance(1);
      most = Math.max(most, heard() - before);
    }
    expect(most).toBeLessThanOrEqual(3);
    expect(clock.now() - startedAt).toBeGreaterThan(900);
  });

  test("much for a long time is heard at a steady rate", async () => {
    const { say, heard, clock } = createTalk();
    await say(...Array.from({ length: 20 }, () => times(500, note)));
    await clock.advance(1000);
    const first = heard();
    await clock.advance(1000);
    expect(heard() - first).toBeGreaterThan(1800);
    expect(heard() - first).toBeLessThan(2200);
  });

  test("long things has said much", async () => {
    const { say, read } = createTalk();
    const long = `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"${"x".repeat(4_000_000)}"}}`;
    await say([long], [long], [note]);
    expect(read()).toBe(1);
  });

  test("a banner is heard at once, and nonsense without end is not", async () => {
    const { say, read, clock } = createTalk();
    await say(times(390, "Welcome!"), [note]);
    expect(read()).toBe(2);
    await say(times(450, "Welcome!"), [note]);
    expect(read()).toBe(3);
    await clock.advance(1200);
    expect(read()).toBe(4);
  });

  test("what we asked for is never late", async () => {
    const { say, link, read } = createTalk();
    const answers = Array.from({ length: 5000 }, () => ask(link));
    await say(...answers.map((_, index) => [answer(index + 1)]));
    expect(read()).toBe(5000);
    expect(await Promise.all(answers)).toHaveLength(5000);
  });

  test("what nobody asked for is an answer too many", async () => {
    const { say, link, read } = createTalk();
    await say(times(3000, answer(77)), [note]);
    expect(read()).toBe(1);
    await link[Symbol.asyncDispose]();
  });

  test("too much answers late, and in order", async () => {
    const { say, link, heard, clock } = createTalk();
    let heardBefore = -1;
    const answered = ask(link).then(() => void (heardBefore = heard()));
    await say([...times(2999, note), answer(1), ...times(500, note)]);
    expect(heardBefore).toBe(-1);
    await clock.advance(1000);
    await answered;
    expect(heardBefore).toBeGreaterThanOrEqual(2999);
    expect(heard()).toBe(3499);
  });

  test("too much is not heard to its end once the link is closed", async () => {
    const { say, link, heard, clock } = createTalk();
    await say(times(100_000, note));
    await link[Symbol.asyncDispose]();
    await expect(link.closed).resolves.toMatchObject({ delivery: "outcome_unknown" });
    expect(heard()).toBeLessThan(100);
    expect(clock.sleeping).toBe(0);
  });

  test("too much and is gone is heard to its end at once", async () => {
    const gone = createDeferred<void>();
    const { say, link, heard, clock } = createTalk(gone.promise);
    const answered = ask(link);
    await say([...times(5000, note), answer(1)], times(5000, note));
    expect(heard()).toBeLessThan(100);
    gone.resolve();
    await answered;
    await expect.poll(heard).toBe(10_000);
    expect(clock.sleeping).toBe(0);
  });
});
