import { type Row, seed } from "../lib/row.ts";
import { figureOf, runTest } from "../lib/run-test.ts";

export const row: Row = {
  title: "Documents byte for byte",
  how:
    "Random JSON that no parser could write again (numbers beyond doubles, any white space, any order of keys) goes as arguments through the " +
    "gateway to four servers and comes back as result; both ends compare text (`test/gateway/bytes.slow.test.ts`).",
  limitMinutes: 60,
  isInShort: false,
  run: async () => {
    const env = { GATEWAY_DOCUMENTS: "100000", GATEWAY_SEED: String(seed) };
    const run = await runTest("test/gateway/bytes.slow.test.ts", env, "random documents");
    return [
      {
        what: "documents to pipes and HTTP, both eras, as JSON and as event streams",
        count: "100,000 documents",
        bound: "0 changed",
        figure: figureOf(run, /\d+ documents, seed .*/),
        isMet: run.isGreen,
      },
    ];
  },
};
