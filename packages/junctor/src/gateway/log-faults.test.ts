import { expect, test } from "vitest";
import type { ListFault } from "../../../core/src/fit/fit-listed.ts";
import { silentLog } from "../log/log.ts";
import { createFaultLog } from "./server-log.ts";

const fault = (name: string, isLeftOut: boolean): ListFault => ({
  part: "tools",
  name,
  isLeftOut,
  reason: "odd",
});

test("what is left out is a warning, what is mended is not, and each is logged once while it lasts", () => {
  const lines: string[] = [];
  const logFaults = createFaultLog({
    ...silentLog,
    info: (facts, text) => lines.push(`info ${text} ${JSON.stringify(facts)}`),
    warn: (facts, text) => lines.push(`warn ${text} ${JSON.stringify(facts)}`),
  });
  const both = [fault("x", true), fault("y", false)];
  logFaults("a", both);
  expect(lines).toEqual([
    'warn a lists 1 thing that clients would refuse: left out {"server":"a","leftOut":[{"name":"x","reason":"odd"}]}',
    'info a lists 1 thing that clients would refuse: mended {"server":"a","mended":[{"name":"y","reason":"odd"}]}',
  ]);
  logFaults("a", both);
  expect(lines).toHaveLength(2);
  logFaults("a", [...both, fault("z", true)]);
  expect(lines.slice(2)).toEqual([expect.stringContaining('"leftOut":[{"name":"z"')]);
  logFaults("b", both);
  expect(lines).toHaveLength(5);
  logFaults("a", []);
  logFaults("a", [fault("x", true)]);
  expect(lines).toHaveLength(6);
});
