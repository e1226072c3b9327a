import { stat } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { ConfigError } from "@junctor/core/errors";
import type { Middleware } from "@junctor/core/provider";

const hooks = ["filterTools", "beforeCall", "afterCall"] as const;

/**
 * Loads a user's module: its default export is a middleware or a function that makes one. A module that changed on disk is
 * loaded again. Throws a `ConfigError` that says what is wrong with it.
 */
export async function loadMiddleware(path: string, file: string): Promise<Middleware> {
  const fail = (message: string, cause?: unknown): ConfigError =>
    new ConfigError(file, [{ path: "junctor.middleware", message }], { cause });
  let made: unknown;
  try {
    const { mtimeMs } = await stat(path);
    const url = `${pathToFileURL(path).href}?changed=${mtimeMs}`;
    const { default: exported } = (await /* the user's */ import(url)) as { readonly default?: unknown };
    made = typeof exported === "function" ? await (exported as () => unknown)() : exported;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw fail(`${path} cannot be loaded: ${reason}`, error);
  }
  if (typeof made !== "object" || made === null)
    throw fail(`${path} has no middleware: write export default { beforeCall(call) { … } }`);
  const wrong = hooks.find((hook) => {
    const value = (made as { readonly [key: string]: unknown })[hook];
    return value !== undefined && typeof value !== "function";
  });
  if (wrong !== undefined) throw fail(`${path}: ${wrong} must be a function`);
  if (!hooks.some((hook) => (made as { readonly [key: string]: unknown })[hook] !== undefined))
    throw fail(`${path} has none of the hooks ${hooks.join(", ")}`);
  return made;
}
