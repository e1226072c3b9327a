import { type Clock, Repeats } from "@junctor/core/async";
import type { ListFault } from "@junctor/core/fit";
import type { GatewayLog } from "../log/index.ts";
import type { Health } from "../upstream/index.ts";
import { toShownFaults } from "./list-notes.ts";

type Down = Extract<Health, { readonly kind: "down" }>;
/** A server that was up for less than this has not recovered. */
const stableMs = 10_000;

/** The time from a server's first failure until it has recovered. */
interface Outage {
  readonly repeats: Repeats;
  failures: number;
  /** When it came up last, if it did. */
  upAt: number | undefined;
  /** Whether the last line above debug level said that it is up. */
  isLoggedUp: boolean;
  stopTimer: () => void;
}

/**
 * Logs the health of servers, each change once: that a server is down and why, each further reason, and that it is up again. What
 * repeats during an outage is summed up at growing intervals on the level `info`, and is a debug line otherwise.
 */
export function createHealthLog(log: GatewayLog, clock: Clock): (server: string, health: Health) => void {
  const outages = new Map<string, Outage>();

  const noteDown = (server: string, health: Down): void => {
    let outage = outages.get(server);
    outage?.stopTimer();
    const hasRecovered = outage?.upAt !== undefined && health.since - outage.upAt >= stableMs;
    if (outage === undefined || hasRecovered)
      outage = {
        repeats: new Repeats({ clock }),
        failures: 0,
        upAt: undefined,
        isLoggedUp: true,
        stopTimer: () => {},
      };
    outages.set(server, outage);
    outage.failures++;
    outage.upAt = undefined;
    const isNew = outage.repeats.isNew(health.reason);
    const isDue = outage.repeats.note(health.reason) !== undefined || outage.isLoggedUp;
    if (isDue) outage.isLoggedUp = false;
    const facts = toFacts(server, health, outage.failures);
    const isFirst = outage.failures === 1;
    const text = isFirst ? `${server} is down` : `${server} is still down after ${outage.failures} tries`;
    if (isNew) log.warn(facts, text);
    else if (isDue) log.info(facts, text);
    else log.debug(facts, text);
  };

  const noteUp = (server: string, health: Extract<Health, { readonly kind: "up" }>): void => {
    const { mode } = health.agreement;
    const facts = { server, revision: mode.revision, connectMs: health.connectMs };
    const outage = outages.get(server);
    const logUp = (): void => {
      if (outage !== undefined) outage.isLoggedUp = true;
      log.info(facts, `${server} is up`);
    };
    if (outage === undefined) return logUp();
    outage.upAt = health.since;
    if (outage.repeats.note("") !== undefined) return logUp();
    log.debug(facts, `${server} is up`);
    // It came up before and did not last. If it lasts now, the log must not end with the line that it is down.
    outage.stopTimer = clock.timer(stableMs, logUp);
  };

  /** It is not restarted automatically, or not by this process: the outage is over. */
  const forget = (server: string): void => {
    outages.get(server)?.stopTimer();
    outages.delete(server);
  };

  return (server, health) => {
    switch (health.kind) {
      case "up":
        return noteUp(server, health);
      case "down":
        return noteDown(server, health);
      case "waiting":
      case "starting":
        if (health.after === undefined) forget(server);
        return log.debug({ server }, `${server} is ${health.kind}`);
      case "idle":
      case "stopped":
        forget(server);
        return log.debug({ server }, `${server} is ${health.kind}`);
    }
  };
}

/** Not the whole error: it names the command, whose arguments may hold a key. */
function toFacts(server: string, health: Down, tries: number): object {
  const { code, reason, said, isBroken } = health;
  const inMs = Math.max(0, Math.round(health.nextTryAt - health.since));
  return { server, code, reason, ...(said === "" ? {} : { stderr: said }), inMs, isBroken, tries };
}

/** Logs once for each server that callers wait for it. */
export function createWaitingLog(log: GatewayLog): (servers: readonly string[]) => void {
  const logged = new Set<string>();
  return (servers) => {
    const news = servers.filter((server) => !logged.has(server));
    news.forEach((server) => logged.add(server));
    if (news.length > 0) log.info({ servers: news }, `callers wait for the first list of ${news.join(", ")}`);
  };
}

/** Logs which definitions in a server's lists were mended or left out. Faults that were in the previous list too are not logged again. */
export function createFaultLog(log: GatewayLog): (server: string, faults: readonly ListFault[]) => void {
  const logged = new Map<string, ReadonlySet<string>>();
  return (server, faults) => {
    const before = logged.get(server);
    logged.set(server, new Set(faults.map(toText)));
    const fresh = faults.filter((fault) => before?.has(toText(fault)) !== true);
    if (fresh.length === 0) return;
    const { leftOut, mended } = toShownFaults(fresh);
    const leftOutCount = fresh.filter(({ isLeftOut }) => isLeftOut).length;
    const mendedCount = fresh.length - leftOutCount;
    if (leftOut !== undefined)
      log.warn(
        { server, leftOut },
        `${server} lists ${things(leftOutCount)} that clients would refuse: left out`,
      );
    if (mended !== undefined)
      log.info(
        { server, mended },
        `${server} lists ${things(mendedCount)} that clients would refuse: mended`,
      );
  };
}

function things(count: number): string {
  return count === 1 ? "1 thing" : `${count} things`;
}

function toText({ part, name, isLeftOut, reason }: ListFault): string {
  return JSON.stringify([part, name, isLeftOut, reason]);
}
