import type { Status } from "../../admin/index.ts";
import { listRunPlaces, type RunPlace } from "../../attach/index.ts";
import type { DaemonStatus } from "../../daemon/index.ts";
import { junctor } from "../../invocation/index.ts";
import { findAdmins } from "../serve/index.ts";
import { UsageError } from "../terminal/index.ts";
import { askStatus } from "./daemon-control.ts";
import { toRealPath } from "./reload.ts";

/** A process of a gateway of `junctor serve`, or a daemon of `junctor attach`, that runs for this user. */
export type Running =
  | { readonly kind: "gateway"; readonly socket: string; readonly status: Status }
  | { readonly kind: "daemon"; readonly place: RunPlace; readonly status: DaemonStatus };

/** What a command line says about the one that is meant. */
interface WantedGateway {
  readonly config: string | undefined;
  readonly pid: string | undefined;
}

/** Everything that runs and fits, the daemons first, and workers in their order. The process number of a primary fits its workers. */
export async function findRunning({ config, pid }: WantedGateway): Promise<readonly Running[]> {
  if (process.platform === "win32")
    throw new UsageError(
      `this does not work on Windows; use ${junctor("daemon")}, or the admin API on its port, see docs/reference/admin-api.md`,
    );
  const [daemons, gateways] = await Promise.all([findDaemons(), findAdmins()]);
  const served = gateways
    .map((target): Running => ({ kind: "gateway", ...target }))
    .toSorted((one, other) => primaryOf(one) - primaryOf(other) || numberOf(one) - numberOf(other));
  const file = config === undefined ? undefined : toRealPath(config);
  return [...daemons, ...served].filter(
    (running) =>
      (file === undefined ||
        (running.status.config !== undefined && toRealPath(running.status.config) === file)) &&
      (pid === undefined || [running.status.pid, primaryOf(running)].includes(Number(pid))),
  );
}

/** The address of its admin page, with the key of this run if the config has none; undefined without a page. */
export function pageOf({ status }: Running): string | undefined {
  return "pageUrl" in status ? status.pageUrl : undefined;
}

function primaryOf({ kind, status }: Running): number {
  return (kind === "gateway" ? status.worker?.primary : undefined) ?? status.pid;
}

function numberOf({ kind, status }: Running): number {
  return (kind === "gateway" ? status.worker?.number : undefined) ?? 0;
}

/** The processes of the only one that runs: several if it has workers. Throws a `UsageError` that tells them apart when several run. */
export function onlyOne<One extends Running>(found: readonly One[]): readonly One[] {
  const byPrimary = new Map(found.map((running) => [primaryOf(running), running]));
  if (byPrimary.size < 2) return found;
  const named = [...byPrimary].map(
    ([pid, { kind, status }]) => `${pid} (the ${kind} of ${status.config ?? "the demo"})`,
  );
  throw new UsageError(`several run; write --pid with one of ${named.join(", ")}`);
}

/** Why a command has nothing to work on. */
export function nothingRuns({ config, pid }: WantedGateway): UsageError {
  const what = config === undefined && pid === undefined ? "" : " with that";
  return new UsageError(
    `no gateway and no daemon of yours runs${what}; ${junctor("serve")} starts one, and a client with ${junctor("attach")} the other`,
  );
}

async function findDaemons(): Promise<readonly Running[]> {
  const found = await Promise.all(
    listRunPlaces().map(async (place): Promise<readonly Running[]> => {
      const status = await askStatus(place);
      return status === undefined ? [] : [{ kind: "daemon", place, status }];
    }),
  );
  return found.flat();
}

export function isDaemon(running: Running): running is Running & { readonly kind: "daemon" } {
  return running.kind === "daemon";
}
