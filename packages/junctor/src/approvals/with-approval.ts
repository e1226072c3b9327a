import { createHash, randomBytes } from "node:crypto";
import { NotFoundError } from "@junctor/core/errors";
import { elicit, isLegacyRevision, lacking } from "@junctor/core/mcp";
import {
  type CallContext,
  findIn,
  type Operation,
  type Outcome,
  type Provider,
  readAnswers,
  thingOf,
  type Wrapper,
} from "@junctor/core/provider";
import { Approvals, refused } from "./approvals.ts";
import { digestOf, showArguments, toQuestionText } from "./question.ts";

/** A rule that wants a person to agree to a call. */
export interface ApprovalRule {
  /** What it is called: `rules[2]`. */
  readonly path: string;
  /** Who must agree: the person at the caller's client, the one who runs the gateway, or both. */
  readonly of: "caller" | "operator" | "both";
  /** How long a question waits; then the call is refused. */
  readonly waitMs: number;
  /** How long a yes is good for calls with the same arguments; 0 for one call alone. */
  readonly goodMs: number;
}

/** Options of `withApproval`. */
export interface ApprovalOptions {
  /** The rule that asks about a call; undefined for calls that need no approval. */
  readonly ruleFor: (operation: Operation, context: CallContext) => ApprovalRule | undefined;
  /** The calls that wait for an answer; in memory when left out. */
  readonly approvals?: Approvals;
  /** The server that a call is for. */
  readonly serverOf?: (operation: Operation, context: CallContext) => string | undefined;
  /** The path that is served: an approval for one does not count for another. */
  readonly scope?: string | undefined;
  /** The policy of the moment as a text: an approval from before an edit no longer counts. */
  readonly policy?: string;
  /** Removes secrets from what a person is shown. */
  readonly hide?: (json: string) => string;
}

/**
 * Has a person agree to calls before they are sent. A yes is for exactly the call that was shown: its bytes, its definition, its caller, its
 * rule. It is used once, and no call is sent before it.
 *
 * @example
 * const careful = withApproval(registry, {
 *   ruleFor: ({ name }) => (name === "pay" ? { path: "pay", of: "caller", waitMs: 600_000, goodMs: 0 } : undefined),
 * });
 */
export function withApproval(provider: Provider, options: ApprovalOptions): Provider {
  const desk = new ApprovalDesk(provider, options);
  const { ruleFor } = options;
  const wrapper: Wrapper = {
    list: (part, context) => provider.list(part, context),
    call: (operation, context) => {
      const rule = canBeAsked(operation) ? ruleFor(operation, context) : undefined;
      const state = stateOf(operation);
      if (rule === undefined && state === undefined) return provider.call(operation, context);
      return desk.call(rule, state, operation, context);
    },
    find: provider.find?.bind(provider),
    watch: provider.watch?.bind(provider),
    offers: (caller) => provider.offers(caller),
    onChange: provider.onChange?.bind(provider),
  };
  return wrapper;
}

/** Operations on a task belong to a call that was approved. Completions and groups only read. */
function canBeAsked({ ref, method }: Operation): boolean {
  return ref === undefined && method !== "completion/complete" && method !== "groups/get";
}

/** What a yes is for: each part by its digest, so that a refusal can say what changed. */
interface Subject {
  readonly call: string;
  readonly arguments: string;
  readonly definition: string;
  readonly server: string;
  readonly caller: string;
  readonly entrance: string;
  readonly rule: string;
  readonly policy: string;
}

const partNames: { readonly [Part in keyof Subject]: string } = {
  call: "the method or the name",
  arguments: "the arguments",
  definition: "the definition",
  server: "the server",
  caller: "the caller",
  entrance: "the path that is called",
  rule: "the rule",
  policy: "the policy",
};

/** The sealed state that a caller carries between the rounds of a call. */
interface ApprovalState {
  /** `caller`: it was asked. `operator`: the call waits. `run`: it was approved and sent, and its server asked something. */
  readonly step: "caller" | "operator" | "run";
  readonly id: string;
  /** The place among equal calls that wait. */
  readonly place?: number;
  readonly subject: Subject;
  readonly expiresAt: number;
  readonly instance: string;
  /** Of `run`: the state of the provider. */
  readonly inner?: unknown;
}

const stateKey = "junctor/approval";
const askKey = "approve";

/** How long a modern caller waits before it is asked to come back. */
const patienceMs = 20_000;

function stateOf({ round }: Operation): ApprovalState | undefined {
  const state = round?.state;
  return typeof state === "object" && state !== null && stateKey in state
    ? (state as { readonly [stateKey]: ApprovalState })[stateKey]
    : undefined;
}

/** Asks about calls, and sends those that were approved. */
class ApprovalDesk {
  readonly #provider: Provider;
  readonly #options: ApprovalOptions;
  readonly #approvals: Approvals;

  constructor(provider: Provider, options: ApprovalOptions) {
    this.#provider = provider;
    this.#options = options;
    this.#approvals = options.approvals ?? new Approvals();
  }

  async call(
    rule: ApprovalRule | undefined,
    state: ApprovalState | undefined,
    operation: Operation,
    context: CallContext,
  ): Promise<Outcome> {
    const bare = { ...operation, round: undefined };
    if (rule === undefined && state?.step !== "run") return this.#provider.call(bare, context);
    const subject = await this.#subjectOf(rule, operation, context);
    if (state === undefined) return this.#begin(rule as ApprovalRule, subject, bare, context);
    this.#assertSame(state, subject);
    if (state.step === "run" || rule === undefined) return this.#goOn(state, operation, context);
    if (state.step === "operator") return this.#awaitOperator(rule, state, bare, context);
    const answer = operation.round && readAnswers(operation.round).elicited(askKey);
    const isYes = answer?.action === "accept" && answer.content["approve"] === true;
    // A no uses the question up too: it cannot be answered again.
    await this.#approvals.use(state.id, digestAll(subject), context.caller);
    this.#report(isYes ? "approved" : "denied", state, rule, bare, context, "caller");
    if (!isYes) throw refused("the user did not agree");
    if (rule.of === "both") return this.#askOperator(rule, subject, bare, context);
    return this.#run(rule, state, bare, context);
  }

  #begin(
    rule: ApprovalRule,
    subject: Subject,
    operation: Operation,
    context: CallContext,
  ): Promise<Outcome> | Outcome {
    const { caller, capabilities } = context;
    if (rule.goodMs > 0 && this.#approvals.isGood(digestAll(subject)))
      return this.#send(operation, context, subject, rule);
    this.#approvals.countAsk(caller);
    if (rule.of === "operator") return this.#askOperator(rule, subject, operation, context);
    const question = elicit(
      toQuestionText(this.#shown(operation, context, subject)),
      { approve: { type: "boolean", title: "Make this call" } },
      [askKey],
    );
    if (lacking(question, capabilities) !== undefined)
      throw refused("this client cannot ask its user. Use one that offers elicitation with forms");
    const state: ApprovalState = {
      step: "caller",
      id: randomBytes(12).toString("base64url"),
      subject,
      expiresAt: this.#approvals.clock.date() + rule.waitMs,
      instance: this.#approvals.instance,
    };
    this.#report("asked", state, rule, operation, context);
    return {
      kind: "input_required",
      asks: { [askKey]: question },
      state: { [stateKey]: state },
      keepsAnswers: false,
    };
  }

  #askOperator(
    rule: ApprovalRule,
    subject: Subject,
    operation: Operation,
    context: CallContext,
  ): Promise<Outcome> {
    const expiresAt = this.#approvals.clock.date() + rule.waitMs;
    const shown = this.#shown(operation, context, subject);
    const { id, place } = this.#approvals.ask({
      ...shown,
      digest: digestAll(subject),
      argumentsDigest: subject.arguments,
      rule: rule.path,
      expiresAt,
    });
    const { instance } = this.#approvals;
    const state: ApprovalState = { step: "operator", id, place, subject, expiresAt, instance };
    return this.#awaitOperator(rule, state, operation, context);
  }

  async #awaitOperator(
    rule: ApprovalRule,
    state: ApprovalState,
    operation: Operation,
    context: CallContext,
  ): Promise<Outcome> {
    const { id, place = 1 } = state;
    const message = `Waiting for the person who runs the gateway to approve this call: ${id}`;
    void context.emit({ kind: "progress", message });
    const ms = isLegacyRevision(context.revision) ? rule.waitMs : patienceMs;
    const answer = await this.#approvals.wait(id, place, ms, context.signal);
    if (answer === undefined)
      return { kind: "input_required", asks: {}, state: { [stateKey]: state }, keepsAnswers: false };
    if (answer === "denied") throw refused("the person who runs the gateway denied it");
    await this.#approvals.use(`${id}.${place}`, digestAll(state.subject), context.caller);
    return this.#run(rule, state, operation, context);
  }

  /** Makes a call whose approval was used up. */
  #run(
    rule: ApprovalRule,
    state: ApprovalState,
    operation: Operation,
    context: CallContext,
  ): Promise<Outcome> {
    const { subject } = state;
    this.#report("used", state, rule, operation, context);
    this.#approvals.keepGood(digestAll(subject), rule.goodMs);
    return this.#send(operation, context, subject, rule);
  }

  /** The provider asked something, and the caller came back with the answers: once for each question. */
  async #goOn(state: ApprovalState, operation: Operation, context: CallContext): Promise<Outcome> {
    await this.#approvals.use(state.id, digestAll(state.subject), context.caller);
    const round = operation.round && { ...operation.round, state: state.inner };
    return this.#send({ ...operation, round }, context, state.subject);
  }

  async #send(
    operation: Operation,
    context: CallContext,
    subject: Subject,
    rule?: ApprovalRule,
  ): Promise<Outcome> {
    const outcome = await this.#provider.call(operation, context);
    if (outcome.kind !== "input_required" || outcome.task !== undefined) return outcome;
    const state: ApprovalState = {
      step: "run",
      id: randomBytes(12).toString("base64url"),
      subject,
      expiresAt: this.#approvals.clock.date() + Math.max(longestMs, rule?.waitMs ?? 0),
      instance: this.#approvals.instance,
      inner: outcome.state,
    };
    return { ...outcome, state: { [stateKey]: state } };
  }

  #assertSame(state: ApprovalState, subject: Subject): void {
    if (state.instance !== this.#approvals.instance)
      throw refused("the gateway was restarted since it was asked. Call again");
    if (state.expiresAt <= this.#approvals.clock.date()) throw refused("nobody answered in time");
    const keys = Object.keys(partNames) as (keyof Subject)[];
    const changed = keys.find((key) => state.subject[key] !== subject[key]);
    if (changed !== undefined)
      throw refused(`${partNames[changed]} changed since it was asked. Call again to be asked again`);
  }

  async #subjectOf(
    rule: ApprovalRule | undefined,
    operation: Operation,
    context: CallContext,
  ): Promise<Subject> {
    const { method, part, name, arguments: args } = operation;
    const { scope = "", policy = "", serverOf } = this.#options;
    const entry = part === undefined ? undefined : await findIn(this.#provider, part, name, context);
    // Nobody is asked about what the caller cannot use.
    if (entry === undefined && (part === "tools" || part === "prompts"))
      throw new NotFoundError(thingOf(operation), name);
    const { caller, identity } = context;
    return {
      call: digest([method, name]),
      arguments: digestOf(args.bytes),
      definition: entry === undefined ? "-" : digestOf(JSON.stringify(entry.item)),
      server: digest([entry?.server ?? serverOf?.(operation, context) ?? ""]),
      caller: digest([caller ?? "", identity?.issuer ?? "", identity?.subject ?? ""]),
      entrance: digest([scope]),
      rule: digest([JSON.stringify(rule ?? {})]),
      policy: digest([policy]),
    };
  }

  #shown(
    operation: Operation,
    context: CallContext,
    { definition }: Subject,
  ): Parameters<typeof toQuestionText>[0] {
    const { hide = (text: string): string => text, serverOf } = this.#options;
    const { method, name, arguments: args } = operation;
    const server = serverOf?.(operation, context);
    return { method, name, server, caller: context.caller, arguments: showArguments(args, hide), definition };
  }

  #report(
    kind: "asked" | "approved" | "denied" | "used",
    { id, subject }: ApprovalState,
    { path }: ApprovalRule,
    operation: Operation,
    context: CallContext,
    by?: string,
  ): void {
    const server = this.#options.serverOf?.(operation, context);
    const { name } = operation;
    const { caller } = context;
    this.#approvals.report({
      kind,
      id,
      name,
      server,
      caller,
      rule: path,
      argumentsDigest: subject.arguments,
      by,
    });
  }
}

/** How long a server's questions about an approved call may wait. */
const longestMs = 3_600_000;

function digestAll(subject: Subject): string {
  return digest(Object.keys(partNames).map((part) => subject[part as keyof Subject]));
}

function digest(texts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(texts)).digest("base64url");
}
