import type { Notification } from "../jsonrpc/message.ts";
import { pagesOf, visitedMethod, visitIdOf } from "../mcp/question.ts";
import type { Ask } from "../mcp/types.ts";
import { type CallContext, withContext } from "../tools/context.ts";
import type { OnBehalf } from "./on-behalf.ts";

/** Who was sent to a page. */
interface Visitor {
  readonly owner: unknown;
  readonly tell: NonNullable<CallContext["visited"]>;
}

/** Most pages that are waited for; beyond that the oldest is forgotten, and nobody hears that the user is done there. */
const maxPages = 256;
const maxIdLength = 1024;

/**
 * Finds out whom a legacy server means when it says that the user is done with a page: whoever it sent there, by a question
 * or by an error. A page to which it sent two different callers is told to neither.
 */
export class Visits {
  readonly #visitors = new Map<string, Visitor | "several">();

  /** The same requests, with an eye on the pages their callers are sent to. */
  heeded(onBehalf: OnBehalf): OnBehalf {
    return (context, about, work) => {
      const { visited } = context;
      const ask = visited === undefined ? undefined : context.ask;
      if (visited === undefined || ask === undefined) return onBehalf(context, about, work);
      const visitor = { owner: context.session, tell: visited };
      const heeding = (question: Ask, signal: AbortSignal): ReturnType<typeof ask> => {
        this.#sent(question.params, visitor);
        return ask(question, signal);
      };
      return onBehalf(withContext(context, { ask: heeding }), about, work).catch((error: unknown) => {
        for (const page of pagesOf(error) ?? []) this.#sent(page, visitor);
        throw error;
      });
    };
  }

  /** Takes a notification; true when it told of a page. */
  take({ method, params }: Notification): boolean {
    if (method !== visitedMethod) return false;
    const id = params?.at("elicitationId")?.value;
    const visitor = typeof id === "string" ? this.#visitors.get(id) : undefined;
    if (typeof id !== "string" || visitor === undefined || visitor === "several") return true;
    this.#visitors.delete(id);
    visitor.tell(id);
    return true;
  }

  #sent(page: unknown, visitor: Visitor): void {
    const id = visitIdOf(page);
    if (id === undefined || id.length > maxIdLength) return;
    const known = this.#visitors.get(id);
    const isOther = known !== undefined && (known === "several" || known.owner !== visitor.owner);
    this.#visitors.delete(id); // So that it counts as new.
    this.#visitors.set(id, isOther ? "several" : visitor);
    const [oldest] = this.#visitors.keys();
    if (this.#visitors.size > maxPages && oldest !== undefined) this.#visitors.delete(oldest);
  }
}
