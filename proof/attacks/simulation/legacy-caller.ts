import { initializeOf, legacyCall } from "../../../test/support/http-wire.ts";
import { SimulatedCall, toEnd, type WireMessage } from "./call.ts";
import type { Chance } from "./chance.ts";
import type { Connection, Frame, Network } from "./virtual-http.ts";
import type { CallPlan } from "./virtual-process.ts";

/** A call of a session, whose stream may go on over another connection. */
interface OpenCall {
  readonly call: SimulatedCall;
  readonly id: number;
  readonly session: string;
  connection: Connection | undefined;
  /** The last event that came, to go on after it. */
  lastEvent: string | undefined;
  readonly seen: Set<string>;
}

/** A client of the legacy era: a session, streams that are resumed, questions in the middle of calls. */
export class LegacyCaller {
  readonly name: string;
  readonly #network: Network;
  #session: string | undefined;
  #isConnecting = false;
  #nextId = 1;
  readonly #open = new Set<OpenCall>();
  readonly #questions: { readonly id: string | number; readonly session: string; readonly nonce: string }[] =
    [];

  constructor(name: string, network: Network) {
    this.name = name;
    this.#network = network;
  }

  get isBusy(): boolean {
    return this.#open.size > 0 || this.#isConnecting;
  }

  get hasSession(): boolean {
    return this.#session !== undefined;
  }

  /** Begins a session; of an earlier one it keeps the calls that are open. */
  initialize(): void {
    if (this.#isConnecting) return;
    this.#isConnecting = true;
    const body = JSON.stringify(initializeOf("2025-11-25", { elicitation: {} }, 1));
    const headers = { "x-caller": this.name };
    this.#network.send(
      { method: "POST", headers, body },
      {
        answered: (_status, answered) => {
          this.#session = answered["mcp-session-id"];
        },
        framed: () => {},
        closed: () => {
          this.#isConnecting = false;
        },
      },
    );
  }

  call(plan: CallPlan): SimulatedCall | undefined {
    const session = this.#session;
    if (session === undefined) return undefined;
    const id = this.#nextId++;
    const call = new SimulatedCall(plan, this.name);
    const open: OpenCall = {
      call,
      id,
      session,
      connection: undefined,
      lastEvent: undefined,
      seen: new Set(),
    };
    this.#open.add(open);
    const body = JSON.stringify(legacyCall(id, "call", plan, { progressToken: id }));
    open.connection = this.#network.send(
      { method: "POST", headers: this.#headers(session), body },
      this.#reader(open),
    );
    return call;
  }

  /** Answers one question that came. */
  answer(chance: Chance): boolean {
    const [question] = this.#questions.splice(chance.below(this.#questions.length), 1);
    if (question === undefined) return false;
    const { id, session, nonce } = question;
    const body = JSON.stringify({ jsonrpc: "2.0", id, result: { action: "accept", content: { nonce } } });
    this.#post(session, body);
    return true;
  }

  cancel(chance: Chance): boolean {
    const open = chance.pick([...this.#open]);
    if (open === undefined) return false;
    const params = { requestId: open.id };
    this.#post(open.session, JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params }));
    // Nothing comes for a call that was cancelled, so nothing is waited for.
    this.#leave(open);
    return true;
  }

  /** The wire of a call breaks; the call goes on. */
  breakWire(chance: Chance): boolean {
    const open = chance.pick([...this.#open]);
    open?.connection?.cut();
    return open !== undefined;
  }

  /** Goes on with every stream that broke. */
  resumeAll(): void {
    for (const open of this.#open) if (open.connection === undefined) this.#resume(open);
  }

  delete(): void {
    const session = this.#session;
    if (session === undefined) return;
    this.#session = undefined;
    const reader = { answered: () => {}, framed: () => {}, closed: () => {} };
    this.#network.send({ method: "DELETE", headers: this.#headers(session) }, reader);
  }

  /** Gives up what is still open, as a client that is closed does. */
  leaveAll(): void {
    for (const open of this.#open) this.#leave(open);
  }

  #leave(open: OpenCall): void {
    this.#open.delete(open);
    open.connection?.cut();
    if (open.call.isOpen) open.call.end({ kind: "left" });
  }

  #resume(open: OpenCall): void {
    // A stream whose first frame was lost cannot be named.
    if (open.lastEvent === undefined) return this.#leave(open);
    const headers = { ...this.#headers(open.session), "last-event-id": open.lastEvent };
    open.connection = this.#network.send({ method: "GET", headers }, this.#reader(open));
  }

  #reader(open: OpenCall): ConstructorParameters<typeof Connection>[0] {
    const connection = (): Connection | undefined => open.connection;
    let isRefused = false;
    let own: Connection | undefined;
    return {
      answered: (status, _headers, body) => {
        own = connection();
        if (body !== "") this.#take(open, body);
        // What the session or the stream was is no longer known here.
        isRefused = status !== 200;
      },
      framed: (frame) => this.#framed(open, frame),
      closed: () => {
        if (own === undefined || open.connection === own) open.connection = undefined;
        if (isRefused && this.#open.has(open)) this.#leave(open);
      },
    };
  }

  #framed(open: OpenCall, { id, data }: Frame): void {
    if (id !== undefined) {
      if (open.seen.has(id)) open.call.faults.push(`event ${id} came twice`);
      open.seen.add(id);
      open.lastEvent = id;
    }
    if (data !== "") this.#take(open, data);
  }

  #take(open: OpenCall, text: string): void {
    const message = JSON.parse(text) as WireMessage;
    const { call } = open;
    if (message.method === "notifications/cancelled") return;
    if (message.method !== undefined) {
      call.hear(message.method, message.params ?? {});
      if (message.id !== undefined)
        this.#questions.push({
          id: message.id,
          session: open.session,
          nonce: String(message.params?.["message"]),
        });
      return;
    }
    if (message.id !== undefined && message.id !== open.id)
      call.faults.push(`the answer to ${message.id} came to ${open.id}`);
    this.#open.delete(open);
    call.end(toEnd(message));
  }

  #post(session: string, body: string): void {
    const reader = { answered: () => {}, framed: () => {}, closed: () => {} };
    this.#network.send({ method: "POST", headers: this.#headers(session), body }, reader);
  }

  #headers(session: string): { readonly [name: string]: string } {
    return { "mcp-session-id": session, "mcp-protocol-version": "2025-11-25", "x-caller": this.name };
  }
}
