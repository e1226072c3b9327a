// The load process: opens fronts, takes turns on them and checks every answer, as its parent says.

import { HttpFront } from "./http-front.mjs";
import { ListeningStreams } from "./listening-streams.mjs";
import { WrongAnswer } from "./scenarios.mjs";
import { SseFront } from "./sse-front.mjs";
import { StdioFront } from "./stdio-front.mjs";
import { takeTurn } from "./turn.mjs";

/** @typedef {HttpFront | SseFront | StdioFront} AnyFront */
/** @typedef {{ transport: "http" | "sse" } & import("./http-front.mjs").Front} HttpLike */
/** @typedef {{ transport: "stdio", command: string, args: string[], era: import("./envelope.mjs").Era }} StdioLike */
/**
 * @typedef {{ seq: number } & (
 *   | { act: "open", key: string, front: HttpLike | StdioLike }
 *   | { act: "turn", key: string, turn: import("./turn.mjs").Turn }
 *   | { act: "once", key: string }
 *   | { act: "close", key: string }
 *   | { act: "listen", key: string, port: number, count: number }
 *   | { act: "told", key: string }
 * )} Order
 */

const openTimeoutMs = 40_000;

/** @type {Map<string, AnyFront>} */
const fronts = new Map();
/** @type {Map<string, ListeningStreams>} */
const streams = new Map();

process.on("disconnect", () => process.exit());
process.on("message", (/** @type {Order} */ order) => void obey(order));

/** @param {Order} order */
async function obey(order) {
  try {
    process.send?.({ seq: order.seq, value: (await answerTo(order)) ?? null });
  } catch (error) {
    const { message } = error instanceof Error ? error : new Error(String(error));
    process.send?.({ seq: order.seq, error: message, isWrong: error instanceof WrongAnswer });
  }
}

/** @param {Order} order */
async function answerTo(order) {
  switch (order.act) {
    case "open": {
      const front = createFront(order.front);
      fronts.set(order.key, front);
      await within(front.open());
      return front instanceof StdioFront ? front.pid : 0;
    }
    case "turn":
      return takeTurn(
        /** @type {import("./turn.mjs").Front<import("./turn.mjs").Socket>} */ (frontOf(order.key)),
        order.turn,
      );
    case "once": {
      const front = frontOf(order.key);
      const socket = front.socket();
      await front.call(/** @type {never} */ (socket));
      socket.close();
      return undefined;
    }
    case "close": {
      const front = fronts.get(order.key);
      if (front instanceof StdioFront || front instanceof SseFront) front.close();
      fronts.delete(order.key);
      streams.get(order.key)?.close();
      streams.delete(order.key);
      return undefined;
    }
    case "listen": {
      const listening = streams.get(order.key) ?? new ListeningStreams(order.port);
      streams.set(order.key, listening);
      return listening.grow(order.count);
    }
    case "told":
      return streams.get(order.key)?.toldMs();
  }
}

/** @param {HttpLike | StdioLike} front */
function createFront(front) {
  switch (front.transport) {
    case "http":
      return new HttpFront(front);
    case "sse":
      return new SseFront(front);
    case "stdio":
      return new StdioFront(front);
  }
}

/** @param {string} key */
function frontOf(key) {
  const front = fronts.get(key);
  if (front === undefined) throw new Error(`${key} is not open`);
  return front;
}

/**
 * @template T
 * @param {Promise<T>} work
 * @returns {Promise<T>}
 */
async function within(work) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const overdue = new Promise((_resolve, reject) => {
    timer = setTimeout(reject, openTimeoutMs, new Error(`not ready after ${openTimeoutMs} ms`));
  });
  try {
    return await Promise.race([work, /** @type {Promise<never>} */ (overdue)]);
  } finally {
    clearTimeout(timer);
  }
}
