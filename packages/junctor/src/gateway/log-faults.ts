import type { ListFault } from "@junctor/core/fit";
import type { GatewayLog } from "../log/index.ts";
import { tellFaults } from "./list-notes.ts";

/** Logs what of a server's lists is mended or left out. A list that says the same again is not logged again. */
export function createFaultLog(log: GatewayLog): (server: string, faults: readonly ListFault[]) => void {
  const logged = new Map<string, ReadonlySet<string>>();
  return (server, faults) => {
    const before = logged.get(server);
    logged.set(server, new Set(faults.map(toText)));
    const fresh = faults.filter((fault) => before?.has(toText(fault)) !== true);
    if (fresh.length === 0) return;
    const { leftOut, mended } = tellFaults(fresh);
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
