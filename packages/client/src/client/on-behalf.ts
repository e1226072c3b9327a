import { fromSignal, type Deadline, type Deadlines, setNewest } from "@junctor/core/async";
import { RpcError, ToolError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import {
  type Declared,
  declaredExtension,
  extensionIds,
  toDeclared,
  withTasks,
  callerKey,
  carriedMeta,
  isModernRevision,
  missingAfter,
  pagesOf,
  toQuestion,
  visitIdOf,
  visitedMethod,
  toRelayable,
  type Question,
  type ClientCapabilities,
} from "@junctor/core/mcp";
import {
  type AskCaller,
  type CallContext,
  type CallEvent,
  type Operation,
  type Outcome,
  withContext,
} from "@junctor/core/provider";
import type { Notification, Request } from "@junctor/core/rpc";
import type { RequestSpec, Conversations } from "./conversation.ts";
import type { OpenCall, QuestionRouter } from "./question-router.ts";

/** Sends an operation on behalf of a caller, which gets the progress and answers the questions. */
export type OnBehalf = (
  operation: Operation,
  context: CallContext,
  work: (spec: RequestSpec) => Promise<Outcome>,
) => Promise<Outcome>;

interface OnBehalfOptions {
  readonly deadlines: Deadlines;
  readonly conversations: Pick<Conversations, "agreement">;
  /** Finds the callers of questions, for a client that forwards the calls of others. */
  readonly router: QuestionRouter | undefined;
  readonly visits: Visits;
  /** The ids of extensions passed to the server in addition to those that always are. */
  readonly opened?: readonly string[] | undefined;
  readonly tellsCaller?: boolean | undefined;
}

export function createOnBehalf(options: OnBehalfOptions): OnBehalf {
  const { deadlines, conversations, router, visits } = options;
  const run: OnBehalf = (operation, context, work) => {
    const stop = context.cancellation ?? fromSignal(context.signal);
    return deadlines.run({ stop }, (deadline) => {
      const spec = toSpecFor(operation, context, deadline, options);
      // A modern server asks in its results.
      if (router === undefined || conversations.agreement?.mode.kind !== "legacy") return work(spec);
      const about = aboutOf(operation);
      deadline.onEnd = context.ask === undefined ? router.enterQuietly(about) : undefined;
      if (deadline.onEnd !== undefined) return work(spec);
      const { ask, session, caller } = context;
      const owners = { owner: session ?? caller, holder: caller ?? session };
      const call = { about, ...owners, ask, deadline, isModern: isModernRevision(context.revision) };
      return inTurn(router, call, spec, work);
    });
  };
  return (operation, context, work) =>
    context.visited === undefined
      ? run(operation, context, work)
      : visits.noteVisits(context, (noting) => run(operation, noting, work));
}

/** What an operation is about, as far as questions are concerned. */
function aboutOf({ method, name }: Operation): string {
  if (method === "tools/call") return name;
  return method === "prompts/get" ? `${method} ${name}` : method;
}

/** How a request is made within a deadline. */
export function toSpec(deadline: Deadline): RequestSpec {
  const onSent = (): void => {
    deadline.isSent = true;
  };
  return { stop: deadline.stop, onSent };
}

/** The capabilities to declare for a caller that declared extensions, by its extensions and its other capabilities. */
const extended = new WeakMap<Declared, WeakMap<ClientCapabilities, ClientCapabilities>>();

/**
 * The capabilities that are declared to a modern server for the caller of one request. A caller that knows tasks
 * gets those of the server.
 */
function toDeclaredFor(context: CallContext, opened: readonly string[] | undefined): ClientCapabilities {
  const { capabilities } = toRelayable(context.capabilities, context.revision);
  if (context.capabilities.extensions === undefined) return capabilities;
  const declared = toDeclared(context.capabilities, opened);
  let byAskable = extended.get(declared);
  if (byAskable === undefined) extended.set(declared, (byAskable = new WeakMap()));
  let extendedOne = byAskable.get(capabilities);
  if (extendedOne === undefined) {
    extendedOne = declared.key === "" ? capabilities : { ...capabilities, extensions: declared.extensions };
    byAskable.set(capabilities, extendedOne);
  }
  return declaredExtension(context.capabilities, extensionIds.tasks) === undefined
    ? extendedOne
    : withTasks(extendedOne);
}

function toSpecFor(
  { ref }: Operation,
  context: CallContext,
  deadline: Deadline,
  { opened, tellsCaller }: Pick<OnBehalfOptions, "opened" | "tellsCaller">,
): RequestSpec {
  const { logLevel, wantsProgress } = context;
  const { stop, onSent } = toSpec(deadline);
  const declared = toDeclaredFor(context, opened);
  // For a caller that knows no tasks, a gateway may follow a task itself.
  const capabilities = ref === undefined ? declared : withTasks(declared);
  const meta = tellsCaller === true ? metaWithCaller(context) : metaOf(context);
  if (!wantsProgress && logLevel === undefined) return { stop, onSent, capabilities, meta };
  // An event that cannot be delivered is dropped: its caller has left, and `stop` says so.
  const onEvent = (event: CallEvent): void => {
    deadline.touch();
    context.emit(event).catch(() => {});
  };
  return { stop, onSent, capabilities, meta, onEvent, wantsProgress, logLevel };
}

function metaOf({ meta, observation }: CallContext): string | undefined {
  return carriedMeta(meta, observation?.traceparent);
}

function metaWithCaller(context: CallContext): string | undefined {
  const { caller, identity } = context;
  const carried = metaOf(context);
  if (caller === undefined) return carried;
  const callerMember = `${JSON.stringify(callerKey)}:${JSON.stringify(identity ?? { name: caller })}`;
  return carried === undefined ? callerMember : `${carried},${callerMember}`;
}

interface CallInTurn {
  readonly deadline: Deadline;
  /** Whether its caller can be told which capabilities it lacks. */
  readonly isModern: boolean;
}

/** Makes a request during which the server may ask its caller something. */
async function inTurn(
  router: QuestionRouter,
  { about, owner, holder, ask, deadline, isModern }: OpenCall & CallInTurn,
  spec: RequestSpec,
  work: (spec: RequestSpec) => Promise<Outcome>,
): Promise<Outcome> {
  const asked = ask === undefined ? undefined : withinCall(ask, deadline);
  const giveUp = (error: Error): void => deadline.stop.abort(error);
  const call: OpenCall = { about, owner, holder, ask: asked?.ask, giveUp };
  const turn = router.enter(call, deadline.stop);
  if (turn !== undefined) {
    const release = deadline.hold(); // The server is not idle: it has not been asked yet.
    await turn.finally(release);
  }
  const { ask: asker } = call;
  let isAnswered = false;
  try {
    const outcome = await work(
      asker === undefined
        ? spec
        : {
            ...spec,
            onAsked: (request, asking) => {
              router.attributed(call);
              return answerBy(asker, request, asking);
            },
          },
    );
    isAnswered = true;
    if (isModern && call.lacks !== undefined) assertDidWithout(call.lacks, outcome);
    return outcome;
  } catch (error) {
    isAnswered = error instanceof RpcError;
    throw error;
  } finally {
    router.leave(call, isAnswered ? "answered" : deadline.isSent ? "given_up" : "not_sent");
    asked?.end();
  }
}

/** Throws `-32021` if the tool failed after it could not ask. Many tools go on without an answer. */
function assertDidWithout(lacks: ClientCapabilities, outcome: Outcome): void {
  const error = outcome.kind === "complete" ? missingAfter(lacks, outcome.result) : undefined;
  if (error !== undefined) throw error;
}

/** Asks the caller of one call. The end of the call withdraws its questions. */
function withinCall(
  ask: AskCaller,
  deadline: Deadline,
): { readonly ask: AskCaller; readonly end: () => void } {
  const over = new AbortController();
  return {
    ask: async (question, asking) => {
      const release = deadline.hold(); // The wait is the caller's, so the server is not idle.
      try {
        return await ask(question, AbortSignal.any([asking, over.signal]));
      } finally {
        release();
      }
    },
    end: () => over.abort(new DOMException("The call is over", "AbortError")),
  };
}

/** Answers a legacy server's request by asking a caller. A ping is answered here. */
export async function answerBy(ask: AskCaller, request: Request, signal: AbortSignal): Promise<RawJson> {
  if (request.method === "ping") return RawJson.fromText("{}");
  const question = toQuestion(request.method, request.params);
  if (question === undefined)
    throw new RpcError("rpc.method_not_found", `Method not found: ${request.method}`);
  try {
    return await ask(question, signal);
  } catch (error) {
    // The `ToolError` is for the model. The server that asked gets the error code.
    throw error instanceof ToolError && error.cause instanceof RpcError ? error.cause : error;
  }
}

/** A caller whose user was sent to a page. */
interface Visitor {
  readonly owner: unknown;
  readonly tell: NonNullable<CallContext["visited"]>;
}

/** The most pages that are remembered; beyond that the oldest is forgotten, and its caller does not hear that the user is done there. */
const maxPages = 256;
const maxIdLength = 1024;

/**
 * Finds the caller a legacy server means when it says that the user is done with a page: the one it sent there, by a question
 * or by an error. If it sent two different callers to the same page, neither hears of it.
 */
export class Visits {
  readonly #visitors = new Map<string, Visitor | "several">();

  /** Makes a request with a context that remembers the pages that its caller is sent to. */
  noteVisits<T>(context: CallContext, make: (noting: CallContext) => Promise<T>): Promise<T> {
    const { visited, ask } = context;
    if (visited === undefined || ask === undefined) return make(context);
    const visitor = { owner: context.session, tell: visited };
    const noting = (question: Question, signal: AbortSignal): ReturnType<typeof ask> => {
      this.#noteSent(question.params, visitor);
      return ask(question, signal);
    };
    return make(withContext(context, { ask: noting })).catch((error: unknown) => {
      for (const page of pagesOf(error) ?? []) this.#noteSent(page, visitor);
      throw error;
    });
  }

  /** Takes a notification; true when it was about a page. */
  take({ method, params }: Notification): boolean {
    if (method !== visitedMethod) return false;
    const id = params?.at("elicitationId")?.value;
    const visitor = typeof id === "string" ? this.#visitors.get(id) : undefined;
    if (typeof id !== "string" || visitor === undefined || visitor === "several") return true;
    this.#visitors.delete(id);
    visitor.tell(id);
    return true;
  }

  #noteSent(page: unknown, visitor: Visitor): void {
    const id = visitIdOf(page);
    if (id === undefined || id.length > maxIdLength) return;
    const known = this.#visitors.get(id);
    const isOther = known !== undefined && (known === "several" || known.owner !== visitor.owner);
    setNewest(this.#visitors, id, isOther ? "several" : visitor, maxPages);
  }
}
