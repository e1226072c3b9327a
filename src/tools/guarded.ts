import { andThen } from "../async/awaitable.ts";
import { type Middleware, withMiddleware } from "./middleware.ts";
import type { Provider } from "./provider.ts";

/** A provider whose middleware may be replaced while it is used. Its other facets are those it had at first. */
export interface Guarded {
  readonly provider: Provider;
  replace(middlewares: readonly Middleware[]): void;
}

/** Like {@link withMiddleware}, with middleware that may be replaced. */
export function createGuarded(base: Provider, middlewares: readonly Middleware[]): Guarded {
  let guarded = withMiddleware(base, middlewares);
  return {
    provider: {
      ...base,
      get cacheHints() {
        return guarded.cacheHints;
      },
      listMeta: (list) => guarded.listMeta?.(list),
      listTools: (context) => guarded.listTools(context),
      // A middleware may filter, and then only its list says which tools there are.
      toolNamed: (name, context) =>
        guarded.toolNamed === undefined
          ? andThen(guarded.listTools(context), (tools) => tools.find((tool) => tool.name === name))
          : guarded.toolNamed(name, context),
      callTool: (call, context) => guarded.callTool(call, context),
    },
    replace: (next) => {
      guarded = withMiddleware(base, next);
    },
  };
}
