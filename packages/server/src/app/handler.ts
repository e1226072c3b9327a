import { type CallContext, withContext } from "@junctor/core/provider";
import type { CompletionRegistry, ToolContext } from "../registry/index.ts";
import { runAsking } from "./asking.ts";
import type { Complete, LookContext } from "./types.ts";

/** A handler of any kind, called with arguments or variables, and its context. */
export type Handler = (subject: never, context: never) => unknown;

/** The context that every kind of registry gives its handlers. */
export type RoundContext = CallContext &
  Pick<ToolContext, "answers" | "state"> & { readonly status?: (text: string) => Promise<void> };

/** The handler of an app as one of a registry. Returns anything but a function unchanged: the registry reports the mistake. */
export function toHandler(handler: Handler): (subject: unknown, context: RoundContext) => unknown {
  if (typeof handler !== "function") return handler;
  return (subject, context) =>
    runAsking(context, (asking) => {
      const { status = (text: string) => context.emit({ kind: "progress", message: text }) } = context;
      const own = withContext(context, { ...context, ...asking, user: userOf(context), status });
      return handler(subject as never, own as never);
    });
}

/** The context of completers and lists. */
export function toLook<More extends object>(context: CallContext, more: More): LookContext<unknown> & More {
  return withContext(context, { ...more, user: userOf(context) });
}

/** The user as the app's `user` returned it, or the name of a caller that another program authenticated. */
function userOf({ identity, caller }: Pick<CallContext, "identity" | "caller">): unknown {
  return identity ?? (caller === undefined ? undefined : { name: caller });
}

/** Calls `register` for each completer of a spec. */
export function eachCompleter(
  completers: object | undefined,
  register: (name: string, complete: Parameters<CompletionRegistry["registerPrompt"]>[2]) => void,
): void {
  for (const [name, complete] of Object.entries(completers ?? {}) as [string, Complete<unknown>][])
    // `register` refuses anything but a function.
    register(
      name,
      typeof complete === "function"
        ? async (typed, known, context) => complete(typed, toLook(context, { known }))
        : complete,
    );
}
