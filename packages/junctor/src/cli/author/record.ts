import { listenHttp, createServer, serveStdio, type Server } from "@junctor/server";
import { CassetteWriter, readCassette, recordProvider, replayProvider } from "../../author/index.ts";
import type { Cassette } from "../../author/index.ts";
import { note, parsePort, type Run, untilSignal, UsageError, withAdvice } from "../terminal/index.ts";
import { assertUp, describeHead, openOneServer } from "./one-server.ts";

/** `junctor record` */
export const record: Run<"record"> = async (parsed) => {
  const [file, named, stray] = parsed.operands;
  if (file === undefined) throw new UsageError("record needs a file to write, such as weather.jsonl");
  if (stray !== undefined)
    throw new UsageError(`record takes a file and one server, but got ${JSON.stringify(stray)} as well`);
  await using one = await openOneServer(parsed, named);
  await assertUp(one);
  const { gateway, secrets } = one;
  const head = describeHead(one);
  const flagSecrets = [...parsed.flags.header, ...parsed.flags.env].map((text) =>
    text.slice(text.search(/[:=]/) + 1).trim(),
  );
  const writer = toUsage(() => new CassetteWriter(file, [...secrets, ...flagSecrets]));
  const provider = await recordProvider(gateway.provider, head, writer);
  return await serveOne(createServer(provider, head), parsed.flags.port, `recording to ${file}`);
};

/** `junctor replay` */
export const replay: Run<"replay"> = async (parsed) => {
  const [file, stray] = parsed.operands;
  if (file === undefined || stray !== undefined)
    throw new UsageError("replay takes the file of one recording");
  const cassette = openCassetteFile(file);
  return serveOne(
    createServer(replayProvider(cassette), cassette.head),
    parsed.flags.port,
    `replaying ${file}`,
  );
};

export function openCassetteFile(file: string): Cassette {
  return toUsage(() => readCassette(file));
}

/** An error in a file that the command line names is a usage error. */
function toUsage<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof TypeError ? new UsageError(error.message) : error;
  }
}

async function serveOne(server: Server, port: string | undefined, what: string): Promise<number> {
  const stopping = new AbortController();
  const stopped = untilSignal(() => undefined).then(() => stopping.abort());
  if (port === undefined) {
    await note(`junctor: ${what}, on standard input and output\n`);
    await serveStdio(server, { signal: stopping.signal, lingerMs: 10 * 60_000, stopMs: 2000 });
    return 0;
  }
  const host = "127.0.0.1";
  const wanted = parsePort("port", port);
  await using listener = await withAdvice(
    { host, port: wanted, portSetting: "--port PORT", hostSetting: "--port PORT" },
    listenHttp(server, { host, port: wanted }),
  );
  process.stdout.write(`${listener.url}\n`);
  await note(`junctor: ${what}; Ctrl-C ends it\n`);
  await stopped;
  return 0;
}
