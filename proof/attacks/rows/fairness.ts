import { connect } from "../../../packages/client/src/client/connect.ts";
import { createTaskCaller } from "../../../test/gateway/support/task-caller.ts";
import { mirrored, modernCall, modernMeta, postOf } from "../../../test/support/http-wire.ts";
import { RawSocket } from "../../../test/support/raw-http.ts";
import { fixture, hostile, startGateway, until } from "../lib/gateway.ts";
import { attempt, type Line, type Row, type Scale, toText } from "../lib/row.ts";

const keys = { greedy: "key-of-the-greedy-caller", modest: "key-of-the-modest-caller" };
const given = {
  env: { GREEDY: keys.greedy, MODEST: keys.modest },
  keys: { greedy: { env: "GREEDY" }, modest: { env: "MODEST" } },
};

type Figure = Pick<Line, "count" | "figure" | "isMet">;

/** One caller begins all the tasks it can; the other begins one after each hundred of them. */
async function beginTasks(wanted: number): Promise<Figure> {
  await using gateway = await startGateway(
    {
      mcpServers: { long: { command: process.execPath, args: [hostile("long-tasks.mjs")] } },
      junctor: { keys: given.keys },
    },
    { env: given.env },
  );
  const url = `http://127.0.0.1:${gateway.port}/mcp`;
  const greedy = createTaskCaller(url, { key: keys.greedy });
  const modest = createTaskCaller(url, { key: keys.modest });
  let begun = 0;
  const times: number[] = [];
  for (let count = 0; count < wanted; count += 100) {
    const replies = await Promise.all(
      Array.from({ length: 100 }, () => greedy("tools/call", { name: "long__work", arguments: {} })),
    );
    begun += replies.filter(({ result }) => result?.["resultType"] === "task").length;
    const before = performance.now();
    await modest.begin("long__work");
    times.push(performance.now() - before);
  }
  const slowest = Math.max(...times);
  return {
    count: `${toText(wanted)} calls of one caller, ${times.length} of another`,
    figure: `${toText(begun)} tasks of the one began, and ${times.length} of the other, the slowest within ${slowest.toFixed(0)} ms`,
    // At once: long before a task of the greedy caller ends.
    isMet: begun > 0 && slowest <= 1000,
  };
}

/** One caller leaves with each question and stays away; the other answers, and calls again as soon as it is served. */
async function leaveQuestions(wanted: number, answerWithinMs: number): Promise<Figure> {
  await using gateway = await startGateway(
    {
      mcpServers: { asks: { command: process.execPath, args: [fixture("bridge-upstream.mjs")] } },
      junctor: { keys: given.keys, servers: { asks: { answerWithinMs } } },
    },
    { env: given.env },
  );
  let left = 0;
  const leave = async (caller: number): Promise<void> => {
    using socket = new RawSocket(gateway.port);
    for (let call = 0; left < wanted; call++) {
      const _meta = modernMeta({ elicitation: { form: {} } });
      const args = { nonce: `greedy-${caller}-${call}`, rounds: [["form"]] };
      const frame = modernCall("asks__ask", args, { _meta });
      const headers = { ...mirrored(frame), authorization: `Bearer ${keys.greedy}` };
      const reply = await socket.send(postOf(frame, headers)).complete;
      if (reply.messages.at(-1)?.result?.["resultType"] === "input_required") left++;
    }
  };
  const leaving = Promise.all(Array.from({ length: wanted }, (_, caller) => leave(caller)));
  await until(() => left > 0, 60_000);
  await using modest = await connect(`http://127.0.0.1:${gateway.port}/mcp`, {
    headers: { authorization: `Bearer ${keys.modest}` },
    handlers: { elicit: ({ message }) => ({ action: "accept", content: { nonce: String(message) } }) },
  });
  const waits: number[] = [];
  const isOver = (): boolean => left >= wanted;
  while (!isOver()) {
    const before = performance.now();
    const { isError } = await modest.callTool("asks__ask", {
      nonce: `modest-${waits.length}`,
      rounds: [["form"]],
    });
    if (isError === true) throw new Error(`call ${waits.length + 1} of the caller that answers failed`);
    waits.push((performance.now() - before) / 1000);
  }
  const [first = 0, ...later] = waits;
  const longest = Math.max(0, ...later);
  // The calls that still wait for their turn end with the gateway.
  leaving.catch(() => {});
  return {
    count: `${left} questions, ${waits.length} calls of another caller, \`answerWithinMs\` ${toText(answerWithinMs)}`,
    figure: `${first.toFixed(1)} s once, then at most ${longest.toFixed(1)} s`,
    isMet: first <= 30 && longest <= 5,
  };
}

async function run(scale: Scale): Promise<readonly Line[]> {
  const questions = scale === "full" ? 50 : 4;
  // The second mostly waits.
  return Promise.all([
    attempt(
      {
        what: "a caller begins as many tasks as it can at one server",
        count: "2,000 calls",
        bound: "each task of another caller begins within 1 s",
      },
      () => beginTasks(2000),
    ),
    attempt(
      {
        what: "a caller leaves the questions of a legacy server on stdio unanswered that it shares with others",
        count: `${questions} questions`,
        bound: "another caller is served within 30 s once, and within 5 s after that",
      },
      () => leaveQuestions(questions, 30_000),
    ),
  ]);
}

export const row: Row = {
  title: "Fairness",
  how: "`junctor serve` over HTTP with two keys, before a modern server and a legacy one on stdio. Times are those of whole calls.",
  limitMinutes: 5,
  isInShort: true,
  run,
};
