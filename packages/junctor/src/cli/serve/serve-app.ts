import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { App } from "@junctor/server";
import { type ParsedOf, parsePort, print, untilSignal, UsageError, withAdvice } from "../terminal/index.ts";

/** Whether an operand of `junctor serve` is a program, and not a config that lacks its flag. */
export function isProgram(operand: string): boolean {
  return /^\.[cm]?[jt]s$/.test(extname(operand));
}

/** `junctor serve APP`: serves the app that a file exports, over HTTP or on standard streams. */
export async function serveApp(parsed: ParsedOf<"serve">): Promise<number> {
  const [file = "", stray] = parsed.operands;
  if (stray !== undefined)
    throw new UsageError(`serve takes one app, but got ${JSON.stringify(stray)} as well`);
  const { flags } = parsed;
  for (const flag of ["config", "tcp", "profile", "workers", "reload"] as const)
    if (flags[flag] !== undefined) throw new UsageError(`--${flag} is not for an app: leave it out`);
  if (flags.stdio && (flags.port ?? flags.host) !== undefined)
    throw new UsageError("--stdio listens on no address; leave out --host and --port");
  const app = await loadApp(file);
  if (flags.stdio) {
    await app.stdio();
    return 0;
  }
  const host = flags.host ?? "127.0.0.1";
  const port = parsePort("port", flags.port ?? "7780");
  const advice = { host, port, portSetting: "--port PORT", hostSetting: "--host 127.0.0.1" };
  await using listener = await withAdvice(advice, app.listen({ host, port }));
  await print(`${listener.url}\n`);
  await untilSignal(() => undefined);
  return 0;
}

async function loadApp(file: string): Promise<Pick<App, "listen" | "stdio">> {
  if (!existsSync(file)) throw new UsageError(`there is no file ${file}`);
  const module = await importFile(file);
  const app = module.default as Partial<App> | undefined;
  if (typeof app?.listen !== "function" || typeof app.stdio !== "function")
    throw new UsageError(
      `${file} exports no app: write export default createApp({ name: "NAME", version: "1.0.0" })`,
    );
  return app as App;
}

async function importFile(file: string): Promise<{ readonly default?: unknown }> {
  try {
    return (await /* the user's */ import(pathToFileURL(resolve(file)).href)) as {
      readonly default?: unknown;
    };
  } catch (error) {
    const { code, stack = "", message } = error as NodeJS.ErrnoException;
    if (code === "ERR_UNKNOWN_FILE_EXTENSION")
      throw new UsageError(
        `Node ${process.versions.node} does not run TypeScript: use Node 22.18 or newer, or install tsx and set NODE_OPTIONS="--import tsx"`,
        { cause: error },
      );
    const place = placeIn(error instanceof SyntaxError ? checkSyntax(file) : stack);
    throw new UsageError(`${file} cannot be loaded: ${message}${place === undefined ? "" : ` (${place})`}`, {
      cause: error,
    });
  }
}

/** The first place in a file that a stack names. */
function placeIn(stack: string): string | undefined {
  return /(?:file:\/\/)?(\/?[^\s()]+:\d+(?::\d+)?)/.exec(stack.replaceAll(/node:\S+/g, ""))?.[1];
}

/** What Node reports about the syntax of a file; the error of an import lacks the place. */
function checkSyntax(file: string): string {
  return spawnSync(process.execPath, ["--check", file], { encoding: "utf8", timeout: 10_000 }).stderr;
}
