import { availableParallelism } from "node:os";
import { systemClock, createDeferred } from "@junctor/core/async";
import { createKeptLog } from "../../admin/index.ts";
import { readSecrets } from "../login/index.ts";
import { type ParsedOf, type Run, untilSignal, UsageError } from "../terminal/index.ts";
import type { FollowedConfig } from "./follow-config.ts";
import { describeListening, describePage, describeServers } from "./greeting.ts";
import { createLog } from "./log.ts";
import { followPlan } from "./reload-socket.ts";
import { isProgram, serveApp } from "./serve-app.ts";
import { type ServedListener, serveGateway, type ServeGatewayOptions } from "./serve-gateway.ts";
import { readServePlan, type ServePlan } from "./serve-plan.ts";

/** `junctor serve` */
export const serve: Run<"serve"> = async (parsed) => {
  if (isProgram(parsed.operands[0] ?? "")) return serveApp(parsed);
  const workers = workersOf(parsed);
  const plan = await readServePlan(parsed);
  if (workers > 1) return (await import("./workers.ts")).serveWithWorkers(plan, workers);
  return serveGateway(plan, optionsOf(plan));
};

const maxWorkers = 256;

function workersOf(parsed: ParsedOf<"serve">): number {
  const value = parsed.flags.workers ?? "1";
  const count = value === "auto" ? Math.min(availableParallelism(), maxWorkers) : Number(value);
  if ((value !== "auto" && !/^\d+$/.test(value)) || count < 1 || count > maxWorkers)
    throw new UsageError(
      `--workers needs a number from 1 to ${maxWorkers}, or auto, not ${JSON.stringify(value)}`,
    );
  if (count === 1) return 1;
  for (const flag of ["stdio", "tcp"] as const)
    if (parsed.flags[flag]) throw new UsageError(`--workers is for HTTP: leave out --${flag}`);
  return count;
}

/** The options of a process that serves alone: signals, the config file and the terminal. */
function optionsOf(plan: ServePlan): ServeGatewayOptions {
  const { opened, served } = plan;
  const log = createKeptLog(createLog(plan.level), systemClock);
  const onWarning = (text: string): void => log.warn({}, text);
  const asked = createDeferred<void>();
  let followed: FollowedConfig | undefined;
  const agree = (): void => void followed?.agree();
  const signalled = untilSignal(() => (opened === undefined ? undefined : agree));
  const stopped = Promise.race([signalled, asked.promise]);
  return {
    log,
    secrets: readSecrets({ env: process.env, served, onWarning }),
    stopped,
    stop: asked.resolve,
    follow: async (gateway) => (followed = await followPlan(plan, gateway, log)),
    greet: (listening) => greet(plan, listening, stopped),
  };
}

/** Prints where it listens, and the status of the servers when that is known. */
async function greet(plan: ServePlan, listening: ServedListener, stopped: Promise<void>): Promise<void> {
  const { url, gateway, page } = listening;
  const write = (text: string): void => void process.stdout.write(text);
  write(describeListening(plan, url));
  if (plan.opened !== undefined) {
    const isStopped = await Promise.race([gateway.ready.then(() => false), stopped.then(() => true)]);
    if (!isStopped) write(describeServers(gateway.status()));
  }
  if (page !== undefined) write(describePage(page));
}
