import type { Row } from "../lib/row.ts";
import { figureOf, runTest } from "../lib/run-test.ts";

const calls = "100000";

export const row: Row = {
  title: "Clients that all use the same id",
  how:
    "1,000 clients of both eras send every request with `id: 1` and `progressToken: 1`. Each call carries a nonce, and all that a client hears " +
    "must carry its own (`test/http/storm.slow.test.ts`, `test/gateway/storm.slow.test.ts`).",
  limitMinutes: 60,
  isInShort: false,
  run: async () => {
    const env = { JUNCTOR_STORM_CALLS: calls };
    const served = await runTest("test/http/storm.slow.test.ts", env);
    const through = await runTest("test/gateway/storm.slow.test.ts", env);
    const bound = "0 astray, 0 hung, 0 lost";
    return [
      {
        what: "calls, streams and questions of one server over HTTP",
        count: "100,000 calls",
        bound: "0 astray, 0 hung",
        figure: served.isGreen ? "0 astray, 0 hung" : figureOf(served, /asked .* got .{0,80}/),
        isMet: served.isGreen,
      },
      {
        what: "calls with progress and logs through a gateway to four servers, of both eras over pipes and HTTP",
        count: "100,000 calls",
        bound,
        figure: figureOf(through, /\d+ of \d+ calls of .*/),
        isMet: through.isGreen,
      },
    ];
  },
};
