import { existsSync, watch } from "node:fs";
import { dirname, extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { createCallContext } from "@junctor/core/provider";
import { createServer, listenHttp } from "@junctor/server";
import { Versions } from "../../author/index.ts";
import { estimateTokens } from "../../context/index.ts";
import { junctor } from "../../invocation/index.ts";
import {
  note,
  type ParsedOf,
  parsePort,
  print,
  type Run,
  ServerTrouble,
  toSafeText,
  untilSignal,
  UsageError,
  withAdvice,
} from "../terminal/index.ts";
import { assertUp, describeHead, openOneServer, type OneServer } from "./one-server.ts";

/** `junctor dev` */
export const dev: Run<"dev"> = async (parsed) => {
  const { command, folder } = readProgram(parsed);
  const start = async (): Promise<DevVersion> => {
    const one = await openOneServer(
      { ...parsed, command, flags: { ...noTarget, ...parsed.flags } },
      undefined,
    );
    try {
      await assertUp(one);
    } catch (error) {
      await one[Symbol.asyncDispose]();
      throw error;
    }
    return { one, provider: one.gateway.provider, [Symbol.asyncDispose]: () => one[Symbol.asyncDispose]() };
  };
  const first = await start();
  await using versions = new Versions(first);
  const host = "127.0.0.1";
  const port = parsePort("port", parsed.flags.port ?? "7780");
  const listening = listenHttp(createServer(versions.provider, describeHead(first.one)), { host, port });
  await using listener = await withAdvice(
    { host, port, portSetting: "--port PORT", hostSetting: "--port PORT" },
    listening,
  );
  await print(`${listener.url}\n`);
  await note(
    `${await describeTools(versions)}; saving a file below ${folder} starts the next version; Ctrl-C ends it\n`,
  );
  using _watching = watchFolder(folder, () => reload(versions, start));
  await untilSignal(() => undefined);
  return 0;
};

interface DevVersion extends AsyncDisposable {
  readonly one: OneServer;
  readonly provider: OneServer["gateway"]["provider"];
}

const noTarget = {
  config: undefined,
  "unsafe-config": false,
  "no-daemon": false,
  header: [],
  timeout: undefined,
};

/** The command to run, and the folder whose files it is made of. */
function readProgram({ operands, command, flags }: ParsedOf<"dev">): {
  readonly command: readonly string[];
  readonly folder: string;
} {
  const [file, stray] = operands;
  if (stray !== undefined)
    throw new UsageError(`dev takes one program, but got ${JSON.stringify(stray)} as well`);
  const watched = flags.watch === undefined ? undefined : resolve(flags.watch);
  if (watched !== undefined && !existsSync(watched))
    throw new UsageError(`--watch: there is no folder ${flags.watch}`);
  if (command !== undefined) {
    if (file !== undefined) throw new UsageError("name the program once: as a file or after --");
    return { command, folder: watched ?? process.cwd() };
  }
  if (file === undefined)
    throw new UsageError(`name a program: ${junctor("dev")} server.mjs, or its command after --`);
  if (!existsSync(file)) throw new UsageError(`there is no file ${file}`);
  return { command: commandFor(file), folder: watched ?? dirname(resolve(file)) };
}

/** An app that a file exports is served; any other program serves by itself. */
const runner =
  "const { default: app } = await import(process.argv[1]); if (typeof app?.stdio === 'function') await app.stdio();";

/** How a file is run. Node runs TypeScript itself from 22.18 on; before that, tsx of the project does. */
function commandFor(file: string): readonly string[] {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const isTyped = /^\.[cm]?ts$/.test(extname(file));
  const needsLoader = isTyped && (major < 22 || (major === 22 && minor < 18));
  const loader = needsLoader ? ["--import", "tsx"] : [];
  const url = pathToFileURL(resolve(file)).href;
  return [process.execPath, ...loader, "--input-type=module", "-e", runner, url];
}

/** Only files of code count: a program that writes logs or data there must not restart itself again and again. */
const isCode = /\.(?:[cm]?[jt]sx?|py|rb|go|rs|java|kt|cs|php|sh|exs?|lua|pl|swift|dart)$/;
const isElsewhere = /(?:^|[/\\])(?:node_modules|\.[^/\\]+|dist|__pycache__)[/\\]/;
/** Editors write a file in several steps. */
const settleMs = 50;

/** Calls `onSaved` when files of a folder were written, never twice at once. */
function watchFolder(folder: string, onSaved: () => Promise<void>): Disposable {
  let timer: NodeJS.Timeout | undefined;
  let isRunning = false;
  let isWanted = false;
  const run = async (): Promise<void> => {
    if (isRunning) return void (isWanted = true);
    isRunning = true;
    do {
      isWanted = false;
      await onSaved();
    } while (isWanted as boolean);
    isRunning = false;
  };
  const watcher = watch(folder, { recursive: true }, (_, name) => {
    if (name === null || !isCode.test(name) || isElsewhere.test(name)) return;
    clearTimeout(timer);
    timer = setTimeout(() => void run(), settleMs);
  });
  watcher.on("error", (error) => void note(`junctor: cannot watch ${folder}: ${error.message}\n`));
  return {
    [Symbol.dispose]: () => {
      clearTimeout(timer);
      watcher.close();
    },
  };
}

async function reload(versions: Versions, start: () => Promise<DevVersion>): Promise<void> {
  const begun = performance.now();
  try {
    await versions.replace(start);
    await note(`reloaded in ${Math.round(performance.now() - begun)} ms: ${await describeTools(versions)}\n`);
  } catch (error) {
    const why = error instanceof ServerTrouble || error instanceof Error ? error.message : String(error);
    await note(`junctor: not reloaded, the version before goes on: ${toSafeText(why).trim()}\n`);
  }
}

async function describeTools({ provider }: Versions): Promise<string> {
  const { items } = await provider.list("tools", createCallContext());
  const tokens = items.reduce((sum, tool) => sum + estimateTokens(JSON.stringify(tool)), 0);
  const names = items.slice(0, 8).map(({ name }) => name);
  const shown = [...names, ...(items.length > 8 ? ["…"] : [])].join(", ");
  return `${items.length} ${items.length === 1 ? "tool" : "tools"}${shown === "" ? "" : ` (${shown})`}, about ${tokens} tokens for a model`;
}
