import { toWorkerFile } from "../../audit/index.ts";
import type { GatewayConfig } from "../../config/index.ts";
import type { ServerStatus } from "../../servers/index.ts";
import { type Complaint } from "../terminal/index.ts";
import type { ConfigSnapshot } from "./follow-config.ts";
import type { WorkerPlace } from "./serve-admin.ts";
import type { ServePlan } from "./serve-plan.ts";

/** The messages of a worker to the primary. `begin` and `agree` are answered. */
export type WorkerMessage =
  | { readonly kind: "begin" }
  | { readonly kind: "up"; readonly url: string; readonly page: string | undefined }
  | { readonly kind: "servers"; readonly servers: readonly ServerStatus[] }
  | { readonly kind: "failed"; readonly complaint: Complaint }
  | { readonly kind: "agree"; readonly version: string | undefined }
  | { readonly kind: "stop" };

/** The messages of the primary to a worker. `apply` is answered with the fault; undefined when the config is used. */
export type PrimaryMessage =
  | { readonly kind: "apply"; readonly edit: WorkerEdit }
  | { readonly kind: "stop" };

/** The answer to `begin`: all that a worker needs. */
export interface WorkerBegin {
  readonly plan: ServePlan;
  readonly agreed: ConfigSnapshot;
  readonly place: Omit<WorkerPlace, "heldFd">;
  readonly secrets: readonly string[];
  /** The variables that the primary was started with, and that its workers were not. */
  readonly env: { readonly [name: string]: string };
}

/** A config that all workers are to use. */
export interface WorkerEdit {
  readonly config: GatewayConfig;
  readonly keepsModules: boolean;
  /** The config that a person agreed to last. */
  readonly agreed: ConfigSnapshot;
}

/** The descriptor in a worker that is open until it and its children are gone. */
export const heldFd = 4;

/** Files with one writer each: `audit.jsonl` of worker 2 is `audit.worker-2.jsonl`. */
export function toWorkerConfig(config: GatewayConfig, number: number): GatewayConfig {
  const { audit, accessLog } = config;
  return {
    ...config,
    audit: audit && { ...audit, file: toWorkerFile(audit.file, number) },
    accessLog:
      typeof accessLog === "object"
        ? { ...accessLog, file: toWorkerFile(accessLog.file, number) }
        : accessLog,
  };
}
