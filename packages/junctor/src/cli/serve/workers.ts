import { rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock, waitFor, createDeferred } from "@junctor/core/async";
import { createMemoryClusterStore } from "../../cluster/index.ts";
import type { ServerStatus } from "../../servers/index.ts";
import { readSecrets } from "../login/index.ts";
import { note, untilSignal } from "../terminal/index.ts";
import { Dealer } from "./dealer.ts";
import { type FollowedConfig, toSnapshot } from "./follow-config.ts";
import { describeListening, describePages, describeServers } from "./greeting.ts";
import { createLog } from "./log.ts";
import { followPlan } from "./reload-socket.ts";
import { assertClusterSecret, readReplicaSettings } from "./replica-settings.ts";
import { newAdminKey } from "./serve-admin.ts";
import { makeTrunkFolder, trunkName } from "./serve-cluster.ts";
import type { ServePlan } from "./serve-plan.ts";
import { Supervisor } from "./supervisor.ts";
import type { WorkerBegin, WorkerEdit, WorkerMessage } from "./worker-messages.ts";
import { setUpCluster, splitEnvironment, startWorker, type WorkerProcess } from "./worker-process.ts";

/** How long workers may take to end, besides the time that parked calls have. */
const stopMs = 60_000;
/** How long children of workers that were killed may take to end. */
const lastMs = 5000;

/**
 * Serves with several processes. This one, the primary, serves no calls: it opens the port and deals out connections, replaces workers
 * that end, follows the config for all, and speaks with the person. Resolves with the exit code.
 */
export async function serveWithWorkers(plan: ServePlan, count: number): Promise<number> {
  const log = createLog(plan.level);
  const onWarning = (text: string): void => log.warn({}, text);
  const secrets = readSecrets({ env: process.env, served: plan.served, onWarning });
  const env = splitEnvironment(process.env);
  const settings = readReplicaSettings(plan.config, process.env);
  assertClusterSecret(settings, process.env);
  // Workers with a store of their own are replicas like any other.
  const store = settings.store === undefined ? createMemoryClusterStore() : undefined;
  const folder = makeTrunkFolder();
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true });
  process.once("exit", removeFolder);
  const place = { count, primary: process.pid, adminKey: newAdminKey(), folder };
  const asked = createDeferred<void>();
  const seen = createSights();
  const left = new Set<Promise<void>>();
  let current: WorkerEdit = { config: plan.config, keepsModules: false, agreed: toSnapshot(plan.config) };
  let followed: FollowedConfig | undefined;
  const begin = (number: number): WorkerBegin => {
    const { config, agreed } = current;
    const opened = plan.opened && { ...plan.opened, config };
    return {
      plan: { ...plan, opened, config },
      agreed,
      place: { ...place, number },
      secrets,
      env: env.hidden,
    };
  };
  const answer = (number: number, message: WorkerMessage): unknown => {
    if (message.kind === "begin") return begin(number);
    if (message.kind === "agree") return followed?.agree(message.version);
    if (message.kind === "stop") return asked.resolve();
    return seen.take(number, message);
  };
  setUpCluster();
  const dealer = new Dealer(systemClock);
  const crew = new Supervisor({
    count,
    clock: systemClock,
    log,
    stopMs: plan.config.drainMs + stopMs,
    start: (number) => {
      const worker = startWorker({ env, store, dealer, answer: (message) => answer(number, message) });
      left.add(worker.gone);
      void worker.gone.then(() => {
        left.delete(worker.gone);
        rmSync(join(folder, trunkName(worker.pid)), { force: true });
      });
      return worker;
    },
  });
  const apply = async (config: WorkerEdit["config"], keepsModules = false): Promise<void> => {
    const edit = { config, keepsModules, agreed: keepsModules ? current.agreed : toSnapshot(config) };
    await applyToAll(crew.running, edit);
    current = edit;
  };
  const agree = (): void => void followed?.agree();
  const signalled = untilSignal(() => (plan.opened === undefined ? undefined : agree));
  using following = await followPlan(plan, { apply }, log);
  followed = following;
  void crew.allUp.then(() => seen.tell(plan, count));
  const failure = await Promise.race([signalled, asked.promise, crew.failed]);
  await crew.stop();
  await waitFor(Promise.all(left), { ms: lastMs });
  if (failure === undefined) return 0;
  await note(failure.text);
  return failure.exitCode;
}

/** Has all workers use a config. When some cannot, and others do, they are replaced by workers that begin with it. */
async function applyToAll(workers: readonly WorkerProcess[], edit: WorkerEdit): Promise<void> {
  const faults = await Promise.all(workers.map((worker) => worker.apply(edit)));
  const [fault] = faults;
  if (fault !== undefined && faults.every((each) => each !== undefined)) throw new Error(fault);
  for (const [index, worker] of workers.entries()) if (faults[index] !== undefined) worker.stop();
}

/** What workers report, until the person has seen it once. */
interface Sights {
  take(number: number, message: WorkerMessage): void;
  tell(plan: ServePlan, count: number): void;
}

function createSights(): Sights {
  const pages = new Map<number, string>();
  let url = "";
  let servers: readonly ServerStatus[] | undefined;
  let isTold = false;
  const tellServers = (): void => {
    if (!isTold || servers === undefined) return;
    process.stdout.write(describeServers(servers));
    isTold = false; // Once.
  };
  return {
    take: (number, message) => {
      if (message.kind === "up") {
        ({ url } = message);
        if (message.page !== undefined) pages.set(number, message.page);
      }
      if (message.kind !== "servers") return;
      servers ??= message.servers;
      tellServers();
    },
    tell: (plan, count) => {
      const sorted = [...pages].toSorted(([one], [other]) => one - other).map(([, page]) => page);
      process.stdout.write(describeListening(plan, url, count) + describePages(sorted));
      isTold = plan.opened !== undefined;
      tellServers();
    },
  };
}
