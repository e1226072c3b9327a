import { systemClock, createDeferred } from "@junctor/core/async";
import { createKeptLog } from "../../admin/index.ts";
import { type IpcChannel, openIpcChannel, createIpcStore } from "../../cluster/index.ts";
import { parseConfigFile, readConfigText, type GatewayConfig } from "../../config/index.ts";
import type { RunningGateway } from "../../gateway/index.ts";
import { junctor } from "../../invocation/index.ts";
import { describeError, type Run, toComplaint, untilSignal, UsageError } from "../terminal/index.ts";
import { type ConfigSnapshot, inspectEdit, toSnapshot } from "./follow-config.ts";
import { createLog } from "./log.ts";
import { serveGateway, type ServeGatewayOptions } from "./serve-gateway.ts";
import {
  heldFd,
  type PrimaryMessage,
  toWorkerConfig,
  type WorkerBegin,
  type WorkerEdit,
  type WorkerMessage,
} from "./worker-messages.ts";

/** The process of one worker, which `junctor serve --workers` starts. */
export const serveWorker: Run<"serve-worker"> = async () => {
  if (process.send === undefined)
    throw new UsageError(`workers are started by: ${junctor("serve")} --workers NUMBER`);
  const stopping = createDeferred<void>();
  const applying = createDeferred<(edit: WorkerEdit) => Promise<string | undefined>>();
  const primary = openIpcChannel<WorkerMessage, PrimaryMessage>(process, "worker", async (message) => {
    if (message.kind === "apply") return (await applying.promise)(message.edit);
    return stopping.resolve();
  });
  try {
    const begin = (await primary.ask({ kind: "begin" })) as WorkerBegin;
    Object.assign(process.env, begin.env);
    assertAgreed(begin.plan.config, begin.agreed);
    // To the primary SIGHUP means that the user agrees to an edit. Here it counts only when the terminal is gone.
    const stopped = Promise.race([stopping.promise, untilSignal(() => () => {})]);
    return await serveAsWorker(begin, { primary, stopped, useApply: applying.resolve });
  } catch (error) {
    const complaint = await toComplaint(error);
    await primary.ask({ kind: "failed", complaint });
    return complaint.exitCode;
  }
};

/** The restart of a worker must not bring in a module or a lock that was edited since a person agreed. */
function assertAgreed(config: GatewayConfig, agreed: ConfigSnapshot): void {
  const now = toSnapshot(config);
  if (now.modules.join() === agreed.modules.join() && now.lock === agreed.lock) return;
  throw new UsageError(
    `a worker is not started: modules or the lock were edited, and wait for "${junctor("reload")}"`,
  );
}

function serveAsWorker(
  begin: WorkerBegin,
  {
    primary,
    stopped,
    useApply,
  }: {
    readonly primary: IpcChannel<WorkerMessage>;
    readonly stopped: Promise<void>;
    /** Takes the function that uses edits of the config. */
    readonly useApply: (apply: (edit: WorkerEdit) => Promise<string | undefined>) => void;
  },
): Promise<number> {
  const { number } = begin.place;
  const toOwn = (config: GatewayConfig): GatewayConfig => toWorkerConfig(config, number);
  const { plan, place, secrets } = begin;
  const opened = plan.opened && { ...plan.opened, config: toOwn(plan.config) };
  const log = createKeptLog(createLog(plan.level, { worker: number }), systemClock);
  let { agreed } = begin;
  const follow = async (gateway: RunningGateway): ReturnType<ServeGatewayOptions["follow"]> => {
    useApply(async (edit) => {
      try {
        await gateway.apply(toOwn(edit.config), edit.keepsModules);
        if (!plan.isLevelGiven) log.level = edit.config.log.level;
        agreed = edit.agreed;
        return undefined;
      } catch (error) {
        return describeError(error);
      }
    });
    if (opened === undefined) return undefined;
    const { file } = opened;
    return {
      inspect: () =>
        inspectEdit(toSnapshot(parseConfigFile(file, readConfigText(file), process.env)), agreed),
      agree: async (version) => (await primary.ask({ kind: "agree", version })) as string | undefined,
      [Symbol.dispose]: () => {},
    };
  };
  return serveGateway(
    { ...plan, opened, config: toOwn(plan.config) },
    {
      log,
      secrets,
      store: createIpcStore(process),
      stopped,
      worker: { ...place, heldFd },
      stop: () => primary.tell({ kind: "stop" }),
      follow,
      greet: async ({ url, page, gateway }) => {
        primary.tell({ kind: "up", url, page });
        const isStopped = await Promise.race([gateway.ready.then(() => false), stopped.then(() => true)]);
        if (!isStopped) primary.tell({ kind: "servers", servers: gateway.status() });
      },
    },
  );
}
