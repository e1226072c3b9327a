import { type ListedItem, type Middleware, foldCase } from "@junctor/core/provider";

interface AllowToolsOptions {
  /** Globs of the tools that may be seen and called; all when left out, none when empty. */
  readonly allow?: readonly string[];
  /** Globs of the tools that may not, whatever `allow` says. */
  readonly deny?: readonly string[];
}

/**
 * Shows only some tools; the others cannot be called either. Prompts and resources are not filtered. In a glob, `*` matches any run of characters
 * and `?` matches one. Globs match whole names and are case-sensitive.
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
      // A list that is not frozen may change, so it is filtered each time.
      if (Object.isFrozen(tools)) passed.set(tools, left);
      return left;
    },
  };
}

/** Whether a name fits. */
export type NameTest = (name: string) => boolean;

/** Whether something may pass by its name. A second name can keep it from passing. */
type PassTest = (name: string, otherName?: string) => boolean;

/**
 * A name passes if it fits a glob of `allow` and none of `deny`. Without `allow` every name fits; with an empty `allow` no name does,
 * because an empty list of allowed names must not allow everything. `deny` applies to both names of a thing. `allow` applies to the
 * first name only, because a server chooses its own names. `deny` ignores case in the URIs of resources.
 *
 * @example
 * const mayPass = createGlobs(["github__*"], ["*delete*"]);
 */
export function createGlobs(allow: readonly string[] | undefined, deny: readonly string[] = []): PassTest {
  const allowed = allow?.map(createGlob);
  const isDenied = createDeny(deny);
  return (name, otherName = name) => {
    const isAllowed = allowed === undefined || allowed.some((fits) => fits(name));
    return isAllowed && !isDenied(name) && (name === otherName || !isDenied(otherName));
  };
}

/** Whether a name fits a glob of `deny`. The name of a resource, which has a colon, is compared without case. */
function createDeny(globs: readonly string[]): NameTest {
  if (globs.length === 0) return () => false;
  const exact = globs.map(createGlob);
  const folded = globs.map((glob) => createGlob(foldCase(glob)));
  return (name) => {
    if (exact.some((fits) => fits(name))) return true;
    if (!name.includes(":")) return false;
    const inOneCase = foldCase(name);
    return folded.some((fits) => fits(inOneCase));
  };
}

/**
 * A test for whole names, case-sensitive: `*` stands for any run of characters, `?` for one (one UTF-16 unit), and
 * everything else for itself. Backtracking goes to the last star only, so the work is at most the length of the glob
 * times the length of the name.
 */
export function createGlob(glob: string): NameTest {
  return (name) => {
    let at = 0;
    /** Where the glob continues after the last star, and the end of the text that the star stands for so far. */
    let afterStar = -1;
    let starEnd = 0;
    for (let read = 0; read < name.length;) {
      if (glob[at] === "*") {
        afterStar = ++at;
        starEnd = read;
      } else if (at < glob.length && (glob[at] === "?" || glob[at] === name[read])) {
        at++;
        read++;
      } else {
        if (afterStar === -1) return false;
        // Let the star match one more character.
        at = afterStar;
        read = ++starEnd;
      }
    }
    while (glob[at] === "*") at++;
    return at === glob.length;
  };
}
