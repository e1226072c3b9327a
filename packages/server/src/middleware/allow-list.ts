import type { ListedItem, Middleware } from "@junctor/core/provider";
import { createGlobs } from "./glob.ts";

export interface AllowToolsOptions {
  /** Globs of the tools that may be seen and called; all when left out, none when empty. */
  readonly allow?: readonly string[];
  /** Globs of the tools that may not, whatever `allow` says. */
  readonly deny?: readonly string[];
}

/**
 * Shows only some tools; the others cannot be called either. Prompts and resources are not judged. In a glob `*` is any run of characters and `?` is one;
 * globs are for whole names and mind case.
 *
 * @example
 * withMiddleware(provider, [allowTools({ allow: ["github__*"], deny: ["*delete*"] })]);
 */
export function allowTools({ allow, deny }: AllowToolsOptions): Middleware {
  const mayPass = createGlobs(allow, deny);
  const passed = new WeakMap<readonly ListedItem[], readonly ListedItem[]>();
  return {
    filterTools: (tools, _, part) => {
      if (part !== "tools") return tools;
      const known = passed.get(tools);
      if (known !== undefined) return known;
      const left = Object.freeze(tools.filter(({ name }) => mayPass(name)));
      // A list that can change is judged anew each time.
      if (Object.isFrozen(tools)) passed.set(tools, left);
      return left;
    },
  };
}
