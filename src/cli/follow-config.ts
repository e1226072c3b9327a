import { statSync } from "node:fs";
import { BindError } from "../errors/bind-error.ts";
import { parseConfigFile, readConfigText } from "../gateway/config/config-file.ts";
import type { GatewayConfig } from "../gateway/config/config.ts";
import type { RunningGateway } from "../gateway/gateway.ts";
import type { GatewayLog } from "../gateway/log.ts";
import { watchConfig } from "../gateway/watch-config.ts";
import { isLoopback } from "../transports/loopback.ts";
import { isAgreed } from "./agreements.ts";
import { UsageError } from "./command.ts";
import { describeError } from "./print.ts";

interface FollowOptions {
  readonly file: string;
  /** The config the gateway was started with. */
  readonly config: GatewayConfig;
  /** Whether the command line names it: only then are its edits agreed to. */
  readonly isNamed: boolean;
  readonly gateway: Pick<RunningGateway, "apply">;
  /** The address the gateway listens on. */
  readonly host: string;
  readonly log: GatewayLog;
}

/** Applies every edit of a config that is right, until the returned function is called; of another it logs what is wrong. */
export function followConfig(options: FollowOptions): () => void {
  const reload = createReload(options);
  let turn = Promise.resolve();
  return watchConfig(options.file, () => {
    turn = turn.then(reload);
  });
}

/**
 * Reads the config again and applies it. Watching tells one edit several times, and tells of files that were written with
 * what they held before: each edit is tried once, and one that changes nothing is not applied.
 */
export function createReload({
  file,
  config: first,
  gateway,
  host,
  log,
  isNamed,
}: FollowOptions): () => Promise<void> {
  let applied = { config: first, version: versionOf(first) };
  let lastEdit = "";
  let isWrong = false;
  const apply = async (text: string): Promise<void> => {
    const config = parseConfigFile(file, text, process.env);
    const version = versionOf(config);
    if (version === applied.version) {
      if (isWrong) log.info({ file }, "the config is right again, and as it was");
      return;
    }
    if (!isNamed && !isAgreed(file, text))
      throw new UsageError(`it was found here and not named: start again to agree, or with --config ${file}`);
    if (!isLoopback(host) && config.keys.length === 0)
      throw new BindError(host, "the new config has no keys");
    for (const { path, message } of config.warnings) log.warn({ file, path }, message);
    if (
      JSON.stringify([config.http, config.log]) !== JSON.stringify([applied.config.http, applied.config.log])
    )
      log.warn({ file }, "http and log of the config hold from the next start on");
    await gateway.apply(config);
    applied = { config, version };
    log.info({ file, servers: config.servers.length }, "the config was read again");
  };
  return async () => {
    const stamp = stampOf(file);
    const read = readOrFail(file);
    const edit = `${stamp} ${read.ok ? read.text : describeError(read.error)}`;
    if (edit === lastEdit) return;
    lastEdit = edit;
    try {
      if (!read.ok) throw read.error;
      await apply(read.text);
      isWrong = false;
    } catch (error) {
      isWrong = true;
      log.error(
        { file, error: describeError(error) },
        "the edited config is not used; the last good one stays",
      );
    }
  };
}

type Read = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly error: unknown };

function readOrFail(file: string): Read {
  try {
    return { ok: true, text: readConfigText(file) };
  } catch (error) {
    return { ok: false, error };
  }
}

/** What a config says, and the state of the modules it names: these are loaded again when they changed. */
function versionOf(config: GatewayConfig): string {
  return JSON.stringify([config, config.middleware.map(stampOf)]);
}

/** Differs whenever a file was written or replaced. */
function stampOf(file: string): string {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats === undefined ? "missing" : `${stats.ino} ${stats.mtimeMs}`;
}
