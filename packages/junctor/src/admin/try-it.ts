import type { ServerResponse } from "node:http";
import {
  recover,
  type Clock,
  sleep,
  timedOut,
  waitFor,
  createDeferred,
  type Deferred,
  LazyAbort,
} from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import { joinJson, toOneLine, type RawJson } from "@junctor/core/json";
import {
  type Caller,
  type ModernEra,
  type Questions,
  isAcceptable,
  parseAsks,
  newestModernRevision,
  type Server,
  type WireContext,
} from "@junctor/core/mcp";
import { toErrorBody, toRequestId } from "@junctor/core/rpc";
import { pageClient } from "../telemetry/index.ts";
import type { AdminSource } from "./admin-source.ts";
import { EventSink } from "./event-hub.ts";
import { AdminError } from "./request.ts";
import { maybe, object, type Shape, text } from "./shape.ts";

/** A call that a person makes from the page. */
interface TryBody {
  readonly tool?: string;
  readonly prompt?: string;
  readonly resource?: string;
  readonly arguments?: RawJson;
  readonly as?: string;
}

const jsonObject = (doc: string): Shape<RawJson> => ({
  schema: { type: "object", description: doc },
  definitions: {},
});

export const tryBody: Shape<TryBody> = object("One of `tool`, `prompt` and `resource`.", {
  tool: maybe(text("The public name of a tool.")),
  prompt: maybe(text("The public name of a prompt.")),
  resource: maybe(text("The URI of a resource.")),
  arguments: maybe(jsonObject("Of a tool; strings for a prompt.")),
  as: maybe(text("The caller whose rights it has. Needed when callers have to say who they are.")),
});

export const answerBody: Shape<{ readonly answers: RawJson }> = object("", {
  answers: jsonObject(
    'An answer for every question of the event, by its key: `{ "action": "accept", "content": { … } }`, or the action `decline` or `cancel`.',
  ),
});

const methods = {
  tool: { method: "tools/call", key: "name" },
  prompt: { method: "prompts/get", key: "name" },
  resource: { method: "resources/read", key: "uri" },
} as const;

/** Makes a call for the person at the page. The answer is an event stream; hanging up cancels the call. */
export async function startTry(
  body: TryBody,
  response: ServerResponse,
  {
    source,
    tries,
    headers,
  }: {
    readonly source: AdminSource;
    readonly tries: Tries;
    readonly headers: { readonly [name: string]: string };
  },
): Promise<void> {
  const [first, second] = (["tool", "prompt", "resource"] as const).flatMap((kind) => {
    const name = body[kind];
    return name === undefined ? [] : [{ kind, name }];
  });
  if (first === undefined || second !== undefined)
    throw new AdminError("admin.bad_request", "Write one of tool, prompt and resource");
  const { kind, name } = first;
  const args = kind === "resource" ? undefined : body.arguments;
  const call = { ...methods[kind], name, args, caller: findCaller(source, body.as) };
  tries.assertRoom();
  let id: string | undefined;
  const sink = new EventSink(response, headers, () => {
    if (id !== undefined) tries.cancel(id);
  });
  await tries.run(call, sink, (open) => {
    id = open;
  });
  id = undefined;
}

/** The most callers that an error names. */
const maxNamed = 20;

/** With keys or tokens, no call comes without a name, so the page has to say whose rights it uses. */
function findCaller({ gateway, hasKeys }: AdminSource, as: string | undefined): Caller | undefined {
  const { controls } = gateway;
  if (as === undefined) {
    if (!hasKeys()) return undefined;
    const known = controls.callers().slice(0, maxNamed).join(", ");
    const choice = known === "" ? "a caller; none has come in by a token yet" : `one of ${known}`;
    throw new AdminError("admin.bad_request", `Write as: ${choice}`);
  }
  if (!hasKeys()) throw new AdminError("admin.bad_request", "as is not needed: callers have no names");
  if (!controls.callers().includes(as)) throw unknownCaller(as);
  if (controls.isRevoked(as)) throw new AdminError("admin.conflict", `${as} is revoked`);
  return controls.identityOf(as) ?? { name: as };
}

export function unknownCaller(name: string): AdminError {
  return new AdminError(
    "admin.not_found",
    `There is no caller ${JSON.stringify(name)} in the config, and no caller of that name came in lately`,
  );
}

/** The call as a request of the protocol. */
interface TryRequest {
  readonly method: "tools/call" | "prompts/get" | "resources/read";
  /** The member of the params that names the thing, and its value. */
  readonly key: "name" | "uri";
  readonly name: string;
  readonly args: RawJson | undefined;
  /** The caller whose rights it has, with all that is known of it. */
  readonly caller: Caller | undefined;
}

interface OpenTry {
  readonly cancellation: LazyAbort;
  questions: Questions | undefined;
  answers: Deferred<RawJson> | undefined;
}

const maxOpen = 16;
const answerMs = 10 * 60_000;
/** The pause before a call is repeated when its result had no questions. */
const pauseMs = 250;

interface TriesOptions {
  readonly server: Server;
  readonly clock: Clock;
}

/** The calls that are made from the page: modern requests to the gateway's own server, without a socket between. */
export class Tries implements Disposable {
  readonly #options: TriesOptions;
  readonly #open = new Map<string, OpenTry>();
  #number = 0;

  constructor(options: TriesOptions) {
    this.#options = options;
  }

  /** Throws when too many calls are open; to be called before the answer begins. */
  assertRoom(): void {
    if (this.#open.size >= maxOpen)
      throw new AdminError("admin.too_many", `${maxOpen} calls are open; end one first`);
  }

  /** Makes a call, and sends its events to the sink. Resolves when it has ended. */
  async run(request: TryRequest, sink: EventSink, onId: (id: string) => void): Promise<void> {
    const id = `t${++this.#number}`;
    const open: OpenTry = { cancellation: new LazyAbort(), questions: undefined, answers: undefined };
    this.#open.set(id, open);
    onId(id);
    const startedAt = performance.now();
    const tell = (kind: string, members: string): void =>
      void sink.send(kind, `{${members},"ms":${Math.round(performance.now() - startedAt)}}`, true);
    try {
      const result = await this.#rounds(id, request, open, sink);
      tell("result", `"isError":${result.textOf("isError") === "true"},"result":${toOneLine(result).text}`);
    } catch (error) {
      const rpcError = error instanceof RpcError ? error : new RpcError("rpc.internal", reasonOf(error));
      tell("error", `"error":${JSON.stringify(toErrorBody(rpcError))}`);
    } finally {
      this.#open.delete(id);
      sink.end();
    }
  }

  /** Passes on answers to the open questions of a call. Throws an `AdminError` for answers that do not fit. */
  answer(id: string, answers: RawJson): void {
    const open = this.#open.get(id);
    if (open === undefined) throw unknownTry(id);
    const { questions } = open;
    if (questions === undefined) throw new AdminError("admin.conflict", `${id} has no open question`);
    for (const [key, question] of Object.entries(questions)) {
      const answer = answers.at(key);
      if (answer === undefined || !isAcceptable(question, answer))
        throw new AdminError("admin.bad_request", `answers.${key} is missing or does not fit the question`);
    }
    open.questions = undefined;
    open.answers?.resolve(answers);
  }

  cancel(id: string): void {
    const open = this.#open.get(id);
    if (open === undefined) throw unknownTry(id);
    open.cancellation.abort(new DOMException("The person at the page cancelled the call", "AbortError"));
  }

  [Symbol.dispose](): void {
    for (const id of this.#open.keys()) this.cancel(id);
  }

  async #rounds(id: string, request: TryRequest, open: OpenTry, sink: EventSink): Promise<RawJson> {
    const { server, clock } = this.#options;
    let next: readonly (string | RawJson)[] = [];
    let isFirst = true;
    for (;;) {
      const wire = this.#toWire(request, open, sink);
      const params = toParams(request, next);
      const message = { kind: "request", id: toRequestId(id), method: request.method, params } as const;
      const answered = recover(
        () => server.handle(message, wire),
        (error) => Promise.reject(error as Error),
      );
      if (isFirst) void sink.send("began", JSON.stringify({ try: id, call: wire.observation?.id }));
      isFirst = false;
      const result = await answered;
      if (result.textOf("resultType") !== '"input_required"') return result;
      const questions = parseAsks(result.at("inputRequests"));
      const state = result.at("requestState");
      const { signal } = open.cancellation;
      const answers = Object.keys(questions).length > 0 ? await this.#ask(questions, open, sink) : undefined;
      if (answers === undefined) await sleep(pauseMs, clock, signal);
      next = [
        ...(answers === undefined ? [] : [',"inputResponses":', answers]),
        ...(state === undefined ? [] : [',"requestState":', state]),
      ];
    }
  }

  async #ask(questions: Questions, open: OpenTry, sink: EventSink): Promise<RawJson> {
    const answers = createDeferred<RawJson>();
    open.questions = questions;
    open.answers = answers;
    void sink.send("question", JSON.stringify({ questions }), true);
    const { signal } = open.cancellation;
    const answer = await waitFor(answers.promise, { ms: answerMs, clock: this.#options.clock, signal });
    if (answer === timedOut) throw new RpcError("rpc.internal", "The question was not answered in time");
    return answer;
  }

  #toWire({ caller }: TryRequest, { cancellation }: OpenTry, sink: EventSink): WireContext {
    const era: ModernEra = {
      kind: "modern",
      revision: newestModernRevision,
      capabilities: { elicitation: { form: {}, url: {} } },
      clientInfo: pageClient,
      logLevel: "info",
      isBare: false,
    };
    return {
      era,
      caller: caller?.name,
      identity: caller,
      owner: pageClient,
      cancellation,
      notify: (method, params) => {
        if (method === "notifications/progress") return sink.send("progress", params.text);
        if (method === "notifications/message") return sink.send("log", params.text);
      },
    };
  }
}

function toParams({ key, name, args }: TryRequest, next: readonly (string | RawJson)[]): RawJson {
  return joinJson([
    `{"${key}":${JSON.stringify(name)}`,
    ...(args === undefined ? [] : [',"arguments":', args]),
    ...next,
    ',"_meta":{"progressToken":1}}',
  ]);
}

function unknownTry(id: string): AdminError {
  return new AdminError("admin.not_found", `There is no open call ${id}; it may have ended`);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : "Internal error";
}
