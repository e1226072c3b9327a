import { join } from "node:path";
import { type Duplex, duplexPair } from "node:stream";
import { createSeal } from "@junctor/core/mcp";
import { serveStream } from "@junctor/server";
import type { Introduction } from "../../attach/index.ts";
import { readConfigText, cacheFolder } from "../../config/index.ts";
import { parseForFront } from "../../daemon/index.ts";
import { startGateway } from "../../gateway/index.ts";
import { checkPlaces } from "../config/index.ts";
import { openLogins, readSecrets } from "../login/index.ts";
import { createLog } from "../serve/index.ts";
import { toComplaint, UsageError } from "../terminal/index.ts";

interface HereOptions {
  /** The path of the config. */
  readonly config: string;
  readonly isTrusted: boolean;
  readonly introduction: Introduction;
}

/**
 * Serves a config in this process, for a front that finds no daemon. Ends the process with a complaint when the config is wrong:
 * then a daemon could not have served it either.
 */
export async function openHere(options: HereOptions): Promise<Duplex> {
  try {
    return await open(options);
  } catch (error) {
    const { text, exitCode } = await toComplaint(error);
    process.stderr.write(text);
    process.exit(exitCode);
  }
}

async function open({ config: file, isTrusted, introduction }: HereOptions): Promise<Duplex> {
  const place = { env: { ...process.env } as { [name: string]: string }, workspace: introduction.workspace };
  const config = parseForFront(file, readConfigText(file), place);
  checkPlaces(file, config, isTrusted);
  const log = createLog(config.log.level);
  const onWarning = (text: string): void => log.warn({}, text);
  const seal = createSeal({ secrets: readSecrets({ env: process.env, served: file, onWarning }) });
  const memoryFolder = join(cacheFolder(), "lists");
  const gateway = await startGateway(config, {
    file,
    unnamed: "trusted",
    log,
    seal,
    memoryFolder,
    logins: openLogins(),
  });
  const { profile } = introduction;
  const server = profile === undefined ? gateway.server : gateway.serverAt(profile);
  if (server === undefined) {
    await gateway.close();
    throw new UsageError(`${file}: the config has no profile ${JSON.stringify(profile)}`);
  }
  const [front, back] = duplexPair();
  const stopping = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stopping.abort());
  const serve = async (): Promise<void> => {
    try {
      await serveStream(server, back, back, { signal: stopping.signal });
    } finally {
      await gateway.close();
      front.destroy();
    }
  };
  void serve();
  return front;
}
