import { type Client, connect, type CallOptions } from "@junctor/client";
import type { Clock } from "@junctor/core/async";
import type { Revision, Server } from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import type { CallEvent, Change, Provider } from "@junctor/core/provider";
import { createServer } from "@junctor/server";
import { CassetteWriter, recordProvider } from "../author/index.ts";
import { failUnanswered, type TestAnswers, type TestQuestion, toHandlers } from "./answers.ts";

/** How a test talks to what it tests. */
export interface TestOptions {
  /** The revision of the protocol to speak; the newest when left out. Use one of each era where a tool asks something. */
  readonly revision?: Revision;
  /** Answers to questions; kinds without an answer are not declared, so that a tool sees a client that cannot be asked. */
  readonly answers?: TestAnswers;
  /** Who is calling, as `context.caller`. */
  readonly caller?: string;
  /** The time of the client and, unless a server was given, of the server; see `createVirtualClock`. */
  readonly clock?: Clock;
  /** A file that gets what is listed and what each call gives, for `openCassette`. Not for a target that is a whole server. */
  readonly record?: string;
}

/** A client in the same process as its server, which keeps the questions and events that it got. */
export interface TestClient extends Client {
  /** Every question so far, in order, with its answer. */
  readonly questions: readonly TestQuestion[];
  /** All progress and log messages so far, in order. */
  readonly events: readonly CallEvent[];
  /** What the server said has changed so far, such as its list of tools. */
  readonly changes: readonly Change[];
}

const optionKeys: KeysOf<TestOptions> = keys("revision answers caller clock record");

/**
 * Connects to a registry, any other provider, or a server, without a socket or a process. Everything else is real: what
 * goes back and forth is JSON, checked by both sides as it would be over a wire. Logs of every level are asked for.
 *
 * A call rejects when the script has no answer for a question it asked. The client is yours to close.
 *
 * @example
 * await using app = await connectForTest(registry, { answers: { elicit: accepted({ sure: true }) } });
 * const { content } = await app.callTool("deploy", { to: "production" });
 * expect(app.questions).toMatchObject([{ kind: "elicit", params: { message: "Really?" } }]);
 */
export async function connectForTest(
  target: Provider | Server,
  options: TestOptions = {},
): Promise<TestClient> {
  assertKnownKeys("connectForTest", options, optionKeys);
  const { answers = {}, caller, clock, record, revision } = options;
  const time = clock === undefined ? {} : { clock };
  const questions: TestQuestion[] = [];
  const events: CallEvent[] = [];
  const changes: Change[] = [];
  const noteEvent = (event: CallEvent): void => void events.push(event);

  const server = isServer(target) ? target : createServer(await toTested(target, record), info, time);
  if (record !== undefined && isServer(target))
    throw new TypeError("connectForTest: record needs the registry or app itself, not a server made of it");
  const tested = { server: failUnanswered(server) };
  const client = await connect(caller === undefined ? tested : { ...tested, caller }, {
    handlers: toHandlers(answers, (question) => questions.push(question)),
    onLog: noteEvent,
    ...time,
    ...(revision === undefined ? {} : { revision }),
  });
  const { mode, capabilities } = await client.agreement();
  // A legacy client sets the log level once; a modern one sends it with every call.
  if (mode.kind === "legacy" && capabilities.logging !== undefined)
    await client.request("logging/setLevel", { level: "debug" });
  const stop = client.onChange?.((change) => void changes.push(change));

  const observed = (given: CallOptions = {}): CallOptions => ({
    logLevel: "debug",
    ...given,
    onEvent: (event) => {
      noteEvent(event);
      given.onEvent?.(event);
    },
  });
  const close = async (): Promise<void> => {
    stop?.();
    await client.close();
  };
  // The client has getters, which spreading would read once and for all.
  return Object.create(
    client,
    Object.getOwnPropertyDescriptors({
      questions,
      events,
      changes,
      callTool: (name: string, args?: object, given?: CallOptions) =>
        client.callTool(name, args, observed(given)),
      streamTool: (name: string, args?: object, given?: CallOptions) =>
        client.streamTool(name, args, observed(given)),
      close,
      [Symbol.asyncDispose]: close,
    }),
  ) as TestClient;
}

const info = { name: "test", version: "0.0.0" };

async function toTested(provider: Provider, file: string | undefined): Promise<Provider> {
  return file === undefined ? provider : recordProvider(provider, info, new CassetteWriter(file));
}

function isServer(target: Provider | Server): target is Server {
  return "handle" in target;
}
