import { type Awaitable, type Clock, sleep, waitFor } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import {
  type AskParams,
  type Elicited,
  type Root,
  type Sampled,
  toQuestion,
  type Question,
  type ClientCapabilities,
} from "@junctor/core/mcp";
import { defined } from "@junctor/core/options";
import type { Answers, Outcome, Round } from "@junctor/core/provider";
import type { Request } from "@junctor/core/rpc";

/** The answers of a client to the questions of servers, in either era. A handler that is left out is not declared. */
export interface QuestionHandlers {
  /** Asks the user to fill in a form. `params` has `message` and `requestedSchema`. */
  readonly elicit?: (params: AskParams, signal: AbortSignal) => Elicited | Promise<Elicited>;
  /** Asks the user to visit a page; show the whole URL first, and never fetch it. */
  readonly elicitUrl?: (params: AskParams, signal: AbortSignal) => Awaitable<Pick<Elicited, "action">>;
  /** Asks the model to write something. */
  readonly sample?: (params: AskParams, signal: AbortSignal) => Sampled | Promise<Sampled>;
  /** The folders the user is working in. */
  readonly roots?: () => readonly Root[] | Promise<readonly Root[]>;
}

/** The capabilities that say which handlers there are. */
export function capabilitiesOf({ elicit, elicitUrl, sample, roots }: QuestionHandlers): ClientCapabilities {
  const elicitation = defined({ form: elicit && {}, url: elicitUrl && {} });
  return defined({
    elicitation: elicit === undefined && elicitUrl === undefined ? undefined : elicitation,
    sampling: sample && {},
    roots: roots && {},
  });
}

/** Answers one question. Rejects with an `RpcError` if there is no handler for it. */
async function answerAsk(ask: Question, handlers: QuestionHandlers, signal: AbortSignal): Promise<RawJson> {
  const { params = {} } = ask;
  switch (ask.method) {
    case "elicitation/create": {
      const isUrl = params["mode"] === "url";
      const handler = isUrl ? handlers.elicitUrl : handlers.elicit;
      if (handler === undefined) throw notOfMode(isUrl ? "url" : "form", handlers);
      return RawJson.fromValue(await handler(params, signal));
    }
    case "sampling/createMessage":
      if (handlers.sample === undefined) throw notDeclared(ask.method);
      return RawJson.fromValue(await handlers.sample(params, signal));
    case "roots/list":
      if (handlers.roots === undefined) throw notDeclared(ask.method);
      return RawJson.fromValue({ roots: await handlers.roots() });
  }
}

/** Answers a legacy server's request. */
export async function answerRequest(
  request: Request,
  handlers: QuestionHandlers,
  signal: AbortSignal,
): Promise<RawJson> {
  const { method, params } = request;
  if (method === "ping") return RawJson.fromText("{}");
  const ask = toQuestion(method, params);
  if (ask === undefined) throw new RpcError("rpc.method_not_found", `Method not found: ${method}`);
  return answerAsk(ask, handlers, signal);
}

/** An undeclared mode makes the params invalid (2025-11-25); without any mode there is no such method. */
function notOfMode(mode: string, { elicit, elicitUrl }: QuestionHandlers): RpcError {
  const isDeclared = elicit !== undefined || elicitUrl !== undefined;
  const code = isDeclared ? "rpc.invalid_params" : "rpc.method_not_found";
  return new RpcError(code, `This client takes no ${mode} elicitation`);
}

function notDeclared(method: string): RpcError {
  return new RpcError("rpc.method_not_found", `This client does not offer ${method}`);
}

/** The pause before the next attempt at a request that is not done and asks nothing. */
const pauseMs = 250;

/** Makes a request again and again, each time with the answers to what the server asked, until it asks nothing more. */
export async function fulfil(
  attempt: (round: Round | undefined) => Awaitable<Outcome>,
  answer: (asks: { readonly [key: string]: Question }) => Promise<Answers>,
  maxRounds: number,
): Promise<Outcome> {
  let round: Round | undefined;
  for (let rounds = 0; rounds <= maxRounds; rounds++) {
    const outcome = await attempt(round);
    // The questions of a task are answered while it runs.
    if (outcome.kind !== "input_required" || outcome.task !== undefined) return outcome;
    round = { answers: await answer(outcome.asks), state: outcome.state };
  }
  throw new RpcError("rpc.other", `The server asked more than ${maxRounds} times; giving up`);
}

/** Answers everything a server asked, all at once. */
export async function answerAll(
  asks: { readonly [key: string]: Question },
  handlers: QuestionHandlers,
  signal: AbortSignal,
  clock: Clock,
): Promise<Answers> {
  const entries = Object.entries(asks);
  if (entries.length === 0) await sleep(pauseMs, clock, signal);
  const answers = entries.map(async ([key, ask]) => [key, await answerAsk(ask, handlers, signal)] as const);
  return Object.fromEntries(await waitFor(Promise.all(answers), { signal }));
}
