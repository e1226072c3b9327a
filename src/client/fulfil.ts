import type { Awaitable } from "../async/awaitable.ts";
import { type Clock, sleep, waitFor } from "../async/clock.ts";
import { RpcError } from "../errors/rpc-error.ts";
import type { RawJson } from "../json/raw.ts";
import type { Ask } from "../mcp/types.ts";
import type { Answers, Outcome, Resumption } from "../tools/provider.ts";
import { type AskHandlers, answerAsk } from "./handlers.ts";

/** A server that asks nothing and is not done wants to be asked again later. */
const pauseMs = 250;

/** Makes a request again and again, each time with the answers to what the server asked, until it is complete. */
export async function fulfil(
  attempt: (resumption: Resumption | undefined) => Awaitable<Outcome>,
  answer: (asks: { readonly [key: string]: Ask }) => Promise<Answers>,
  maxRounds: number,
): Promise<RawJson> {
  let resumption: Resumption | undefined;
  for (let rounds = 0; rounds <= maxRounds; rounds++) {
    const outcome = await attempt(resumption);
    if (outcome.kind === "complete") return outcome.result;
    resumption = { answers: await answer(outcome.asks), state: outcome.state };
  }
  throw new RpcError("rpc.other", `The server asked more than ${maxRounds} times; giving up`);
}

/** Answers everything a server asked, all at once. */
export async function answerAll(
  asks: { readonly [key: string]: Ask },
  handlers: AskHandlers,
  signal: AbortSignal,
  clock: Clock,
): Promise<Answers> {
  const entries = Object.entries(asks);
  if (entries.length === 0) await sleep(pauseMs, clock, signal);
  const answers = entries.map(async ([key, ask]) => [key, await answerAsk(ask, handlers, signal)] as const);
  return Object.fromEntries(await waitFor(Promise.all(answers), { signal }));
}
