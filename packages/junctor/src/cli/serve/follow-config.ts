import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { isLoopback } from "@junctor/core/channel";
import { BindError } from "@junctor/core/errors";
import type { LeveledLog } from "../../admin/index.ts";
import {
  type GatewayConfig,
  isOpen,
  listForNextStart,
  parseConfigFile,
  readConfigText,
  toAgreedPart,
  watchConfig,
} from "../../config/index.ts";
import type { RunningGateway } from "../../gateway/index.ts";
import { junctor } from "../../invocation/index.ts";
import type { GatewayLog } from "../../log/index.ts";
import { checkPlaces } from "../config/index.ts";
import { describeError } from "../terminal/index.ts";
import { showUnseen } from "./lock-diff.ts";

/** Which edits are used while the gateway runs: those that only take something away, all, or none until a person agrees. */
export const reloadChoices = ["safe", "trust", "off"] as const;
export type ReloadChoice = (typeof reloadChoices)[number];

interface FollowOptions {
  readonly file: string;
  /** The config the gateway was started with. */
  readonly config: GatewayConfig;
  /** Whether the config may be where others write. */
  readonly isTrusted: boolean;
  readonly choice: ReloadChoice;
  readonly gateway: Pick<RunningGateway, "apply">;
  /** The address the gateway listens on. */
  readonly host: string;
  /** If its level can be set, edits of `log.level` set it. */
  readonly log: GatewayLog & Partial<Pick<LeveledLog, "level">>;
  /** Whether the level stays, because the command line sets it. */
  readonly keepsLevel?: boolean;
  /** Reads the text of the config; as this process sees it. */
  readonly parse?: (text: string) => GatewayConfig;
}

/** The part of a config, as it is now, that waits for a person. */
export interface WaitingEdit {
  /** Each setting that waits, as a person may read it. */
  readonly waiting: readonly string[];
  /** Differs for each content of the config, the files of variables and the modules it names. */
  readonly version: string;
}

/** A config whose edits are taken. */
export interface FollowedConfig extends Disposable {
  /** Looks at the config now, and takes what may be taken. */
  look(): Promise<void>;
  /** What waits. Throws when the config is wrong. */
  inspect(): WaitingEdit;
  /**
   * Takes the whole config as it is now: a person agreed. With a version, only if that is what it still is. Resolves with
   * what is wrong; undefined when it was taken.
   */
  agree(version?: string): Promise<string | undefined>;
}

/** Takes edits of a config, one after the other, until it is disposed; it logs the faults of a wrong one. */
export function followConfig(options: FollowOptions): FollowedConfig {
  const { look, inspect, agree } = createReload(options);
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = turn.then(work);
    turn = done.catch(() => {});
    return done;
  };
  const stop = options.choice === "off" ? () => {} : watchConfig(options.file, () => void inTurn(look));
  return {
    look: () => inTurn(look),
    inspect,
    agree: (version) => inTurn(() => agree(version)),
    [Symbol.dispose]: stop,
  };
}

export type Reload = Pick<FollowedConfig, "look" | "inspect" | "agree">;

/**
 * Reads the config again and applies what may be applied. Watching reports one edit several times, and reports files that were written
 * again unchanged: each edit is tried once, and one that changes nothing is not applied.
 */
export function createReload(options: FollowOptions): Reload {
  const { file, config: first, isTrusted, choice, gateway, host, log, keepsLevel = false } = options;
  const { parse = (text) => parseConfigFile(file, text, process.env) } = options;
  const readSnapshot = (): ConfigSnapshot => toSnapshot(parse(readConfigText(file)));
  let agreed = toSnapshot(first);
  let applied = JSON.stringify(agreed);
  let last = first;
  let level = first.log.level;
  let lastEdit = "";
  let lastWaiting = "";
  let isWrong = false;

  const apply = async (next: ConfigSnapshot, isWhole: boolean): Promise<void> => {
    checkPlaces(file, next.config, isTrusted);
    const { config, waiting } = isWhole ? { config: next.config, waiting: [] } : split(next, agreed);
    // Whether certificates are asked for was decided at the start.
    if (!isLoopback(host) && isOpen({ ...config, http: first.http }))
      throw new BindError(host, "the new config has neither keys nor issuers");
    const { modules, lock } = isWhole ? next : agreed;
    const used: ConfigSnapshot = { config, modules, lock };
    if (JSON.stringify(used) !== applied) {
      for (const { path, message } of config.warnings.slice(0, maxShown)) log.warn({ file, path }, message);
      const held = listForNextStart(config, first).join(", ");
      if (held !== "" && listForNextStart(config, last).length > 0)
        log.warn(
          { file },
          `of the edited config, this counts from the next start of the gateway on: ${held}`,
        );
      await gateway.apply(config, !isWhole);
      if (config.log.level !== level && !keepsLevel) log.level = config.log.level;
      level = config.log.level;
      last = config;
      applied = JSON.stringify(used);
      log.info({ file, servers: config.servers.length }, "the config was read again");
    } else if (isWrong) log.info({ file }, "the config is right again, and as it was");
    if (isWhole) agreed = next;
    if (waiting.join() !== lastWaiting && waiting.length > 0)
      log.warn({ file, waiting: waiting.slice(0, maxShown).map(toShort) }, describe(waiting));
    lastWaiting = waiting.join();
    isWrong = false;
  };
  const refuse = (error: unknown): string => {
    isWrong = true;
    const text = describeError(error);
    log.error({ file, error: text }, "the edited config is not used; the last good one stays");
    return text;
  };
  return {
    look: async () => {
      const stamp = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
      const read = readOrFail(file);
      const edit = `${stamp} ${read.ok ? read.text : describeError(read.error)}`;
      if (edit === lastEdit) return;
      lastEdit = edit;
      try {
        if (!read.ok) throw read.error;
        await apply(toSnapshot(parse(read.text)), choice === "trust");
      } catch (error) {
        refuse(error);
      }
    },
    inspect: () => inspectEdit(readSnapshot(), agreed),
    agree: async (version) => {
      try {
        const next = readSnapshot();
        if (version !== undefined && version !== versionOf(next)) return "the config was edited meanwhile";
        await apply(next, true);
        return undefined;
      } catch (error) {
        return refuse(error);
      }
    },
  };
}

/** A tool may edit the config again and again, and must not fill the log. */
const maxShown = 20;

const maxLength = 1000;

/** One setting may be a megabyte long. */
function toShort(text: string): string {
  const more = text.length - maxLength;
  return more > 0 ? `${text.slice(0, maxLength)}… and ${more} characters more` : text;
}

function describe(waiting: readonly string[]): string {
  const more = waiting.length - maxShown;
  const shown = [...waiting.slice(0, maxShown).map(toShort), ...(more > 0 ? [`${more} more`] : [])];
  return (
    `part of the edited config waits for you: ${shown.join("; ")}. ` +
    `To take it, run "${junctor("reload")}" or send SIGHUP to process ${process.pid}`
  );
}

/** The part of a config, as it is now, that waits for a person who agreed to another one. */
export function inspectEdit(next: ConfigSnapshot, agreed: ConfigSnapshot): WaitingEdit {
  return { waiting: split(next, agreed).waiting, version: versionOf(next) };
}

function split(next: ConfigSnapshot, agreed: ConfigSnapshot): ReturnType<typeof toAgreedPart> {
  const { config, waiting } = toAgreedPart(next.config, agreed.config);
  const isNewModule = next.modules.join() !== agreed.modules.join();
  const modules =
    isNewModule && !waiting.includes("junctor.middleware") ? ["junctor.middleware (files)"] : [];
  const isNewLock = next.lock !== agreed.lock && !waiting.includes("junctor.lock");
  const files = [...modules, ...(isNewLock ? ["junctor.lock (file)"] : [])];
  return { config, waiting: [...waiting, ...files].map(showUnseen) };
}

/** What a config says, and the state of the modules and the lock it names. */
export interface ConfigSnapshot {
  readonly config: GatewayConfig;
  readonly modules: readonly string[];
  readonly lock: string;
}

/** The config with the state its files have now. */
export function toSnapshot(config: GatewayConfig): ConfigSnapshot {
  const lock = config.lock === undefined ? "" : stampOf(config.lock.file);
  return { config, modules: config.middleware.map(stampOf), lock };
}

function versionOf(snapshot: ConfigSnapshot): string {
  return createHash("sha256").update(JSON.stringify(snapshot)).digest("hex");
}

function readOrFail(
  file: string,
): { readonly ok: true; readonly text: string } | { readonly ok: false; readonly error: unknown } {
  try {
    return { ok: true, text: readConfigText(file) };
  } catch (error) {
    return { ok: false, error };
  }
}

/** Differs whenever a file holds something else. */
function stampOf(file: string): string {
  try {
    return createHash("sha256").update(readFileSync(file)).digest("hex");
  } catch {
    return "missing";
  }
}

/** The config of a daemon, whose edits are taken by each of its gateways as its clients see them. */
export class FollowedGateways implements Pick<FollowedConfig, "inspect" | "agree"> {
  readonly #file: string;
  readonly #followed = new Set<FollowedConfig>();
  #text: string;

  /** `text` is what a person agreed to by starting the daemon. */
  constructor(file: string, text: string) {
    this.#file = file;
    this.#text = text;
  }

  /** The text of the config that a person agreed to. */
  get text(): string {
    return this.#text;
  }

  /** Has a gateway take edits, also those made since the config was agreed to, until the returned function is called. */
  follow(options: Parameters<typeof followConfig>[0]): () => void {
    const followed = followConfig(options);
    this.#followed.add(followed);
    if (this.#isEdited()) void followed.look();
    return () => {
      this.#followed.delete(followed);
      followed[Symbol.dispose]();
    };
  }

  /** What waits, for any of the gateways. */
  inspect(): WaitingEdit {
    const edits = [...this.#followed].map((followed) => followed.inspect());
    return {
      waiting: [...new Set(edits.flatMap(({ waiting }) => waiting))],
      version: createHash("sha256")
        .update(JSON.stringify([readConfigText(this.#file), ...edits.map(({ version }) => version)]))
        .digest("hex"),
    };
  }

  /** Whether the config is used as it is now: every edit was taken, and nothing waits. */
  async isCurrent(): Promise<boolean> {
    if (this.#followed.size === 0) return !this.#isEdited();
    try {
      for (const followed of this.#followed) await followed.look();
      return this.inspect().waiting.length === 0;
    } catch {
      return false; // It is wrong, and the one before it is used.
    }
  }

  #isEdited(): boolean {
    try {
      return readConfigText(this.#file) !== this.#text;
    } catch {
      return true; // `look` reports what is wrong with it.
    }
  }

  async agree(version?: string): Promise<string | undefined> {
    try {
      if (version !== undefined && version !== this.inspect().version)
        return "the config was edited meanwhile";
      const text = readConfigText(this.#file);
      for (const followed of this.#followed) {
        const wrong = await followed.agree();
        if (wrong !== undefined) return wrong;
      }
      this.#text = text;
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }
}
