import { mirrored, modernCall, modernMeta } from "../../../test/support/http-wire.ts";
import { SimulatedCall, toEnd, type WireMessage } from "./call.ts";
import type { Chance } from "./chance.ts";
import type { Connection, Network } from "./virtual-http.ts";
import type { CallPlan } from "./virtual-process.ts";

/** A question that the caller left with. */
interface Asked {
  readonly call: SimulatedCall;
  readonly requestState: string;
  /** The nonce in each question, by its key. */
  readonly nonces: ReadonlyMap<string, string>;
}

/** A client of the modern era: each request stands alone, questions come as results. */
export class ModernCaller {
  readonly name: string;
  readonly #network: Network;
  readonly #canBeAsked: boolean;
  readonly #open = new Map<SimulatedCall, Connection>();
  #asked: Asked[] = [];

  constructor(name: string, network: Network, canBeAsked: boolean) {
    this.name = name;
    this.#network = network;
    this.#canBeAsked = canBeAsked;
  }

  get isBusy(): boolean {
    return this.#open.size > 0 || this.#asked.length > 0;
  }

  call(plan: CallPlan): SimulatedCall {
    const call = new SimulatedCall(plan, this.name);
    this.#send(call, {});
    return call;
  }

  /** Comes back with answers to one question. */
  answer(chance: Chance): boolean {
    const index = chance.below(this.#asked.length);
    const asked = this.#asked[index];
    if (asked === undefined) return false;
    this.#asked.splice(index, 1);
    const { call, requestState, nonces } = asked;
    const answers = [...nonces].map(([key, nonce]) => [key, { action: "accept", content: { nonce } }]);
    this.#send(call, { requestState, inputResponses: Object.fromEntries(answers) });
    return true;
  }

  /** Forgets a question, as a client does whose user went home. */
  abandon(chance: Chance): boolean {
    const [asked] = this.#asked.splice(chance.below(this.#asked.length), 1);
    asked?.call.end({ kind: "left" });
    return asked !== undefined;
  }

  /** Hangs up in the middle of a call, which cancels it. */
  hangUp(chance: Chance): boolean {
    const [call, connection] = chance.pick([...this.#open]) ?? [];
    connection?.cut();
    return call !== undefined;
  }

  #send(call: SimulatedCall, more: { readonly [member: string]: unknown }): void {
    const meta = { ...modernMeta(this.#canBeAsked ? { elicitation: { form: {} } } : {}), progressToken: 1 };
    const frame = modernCall("call", call.plan, { ...more, _meta: meta });
    let response: WireMessage | undefined;
    const take = (text: string): void => {
      const message = JSON.parse(text) as WireMessage;
      if (message.method !== undefined) return call.hear(message.method, message.params ?? {});
      if (response !== undefined) call.faults.push(`${call.plan.nonce} was answered twice on one connection`);
      response = message;
    };
    const connection = this.#network.send(
      { method: "POST", headers: { ...mirrored(frame), "x-caller": this.name }, body: JSON.stringify(frame) },
      {
        answered: (_status, _headers, body) => {
          if (body !== "") take(body);
        },
        framed: ({ data }) => {
          if (data !== "") take(data);
        },
        closed: () => {
          this.#open.delete(call);
          this.#ended(call, response);
        },
      },
    );
    this.#open.set(call, connection);
  }

  #ended(call: SimulatedCall, response: WireMessage | undefined): void {
    if (response === undefined) return call.end({ kind: "left" });
    const { requestState, inputRequests = {} } = response.result ?? {};
    if (response.result?.resultType !== "input_required" || requestState === undefined)
      return call.end(toEnd(response));
    for (const { params } of Object.values(inputRequests)) call.hear("elicitation/create", params);
    const nonces = Object.entries(inputRequests).map(
      ([key, { params }]) => [key, String(params.message)] as const,
    );
    call.isAsked = true;
    this.#asked.push({ call, requestState, nonces: new Map(nonces) });
  }
}
