import type { Clock } from "@junctor/core/async";
import type { HttpListener } from "@junctor/server";
import type { Setting } from "../config/index.ts";
import type { RunningGateway } from "../gateway/index.ts";
import type { ServerStatus } from "../servers/index.ts";
import type { Telemetry } from "../telemetry/index.ts";
import type { KeptLog } from "./kept-log.ts";
import type { ServerDays } from "./server-days.ts";

/** A config that is followed while the gateway runs. */
export interface EditedConfig {
  /** The part of it that waits for a person. Throws when the config is wrong. */
  inspect(): { readonly waiting: readonly string[]; readonly version: string };
  /** Takes the config as it is; with `version`, only if it still has that version. Resolves with the fault, if there is one. */
  agree(version?: string): Promise<string | undefined>;
}

/** Something about the config that a person should know. */
interface ConfigNote {
  readonly path: string;
  readonly message: string;
}

/** The parts of a running gateway that the admin API shows and acts on. */
export interface AdminSource {
  readonly gateway: RunningGateway;
  readonly telemetry: Telemetry;
  readonly log: KeptLog;
  readonly clock: Clock;
  readonly version: string;
  /** The file of the config; undefined for the demo. */
  readonly file: string | undefined;
  /** Which of several workers this process is. */
  readonly worker?: { readonly number: number; readonly count: number; readonly primary: number } | undefined;
  readonly hasKeys: () => boolean;
  /** The listener of callers, while there is one. */
  readonly http: () => Pick<HttpListener, "url" | "inspect" | "drain"> | undefined;
  readonly edits: EditedConfig | undefined;
  /** How each server was over the last day. */
  readonly days: ServerDays;
  /** The config as it is understood, with secrets hidden. Throws when it is wrong. */
  readonly settings: () => readonly Setting[];
  /** The folder of the counters by hour; undefined where they are switched off. */
  readonly usageFolder: string | undefined;
  /** Warnings of the config. */
  readonly warnings: () => readonly ConfigNote[];
  /** Advice for a server that is in trouble. */
  readonly advise: (status: ServerStatus) => string | undefined;
  /** How often a server was started again since the gateway started. */
  readonly restarts: (server: string) => number;
  readonly isReady: () => boolean;
  readonly isDraining: () => boolean;
  /** Begins no call from now on. */
  readonly drain: () => void;
  /** Ends the gateway as SIGTERM does. */
  readonly stop: () => void;
}
