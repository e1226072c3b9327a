// Every cell of docs/evidence/compatibility.md: `node proof/conformance/compatibility.mjs` runs them and writes the page.

import { afterAll, beforeAll, describe, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { type Bench, startBench } from "./bench.ts";
import { provenOf, type Row, tables } from "./cells.ts";
import { proofs } from "./proofs.ts";

const byName = <Named extends { readonly name: string }>(
  all: readonly Named[],
): readonly (readonly [string, Named])[] => all.map((one) => [one.name, one]);

let nonces = 0;

// Tables know nothing of each other. The cells of a table come one after the other, as the calls of a user do.
describe.concurrent.each(byName(tables))("%s", (_, table) => {
  // A process that asks without saying for which call is not shared with rows that cancel calls: for a minute after that, its
  // questions to other callers are refused.
  const benchOf = ({ server, name }: Row): string =>
    table.back === "stdio" && server === "legacy" ? name : server;
  const benches = new Map<string, Bench>();
  const end = async (name: string): Promise<void> => {
    const bench = benches.get(name);
    benches.delete(name);
    await bench?.[Symbol.asyncDispose]();
  };
  const isLast = (row: Row): boolean => table.rows.findLast((each) => benchOf(each) === benchOf(row)) === row;
  // The last row of a bench may be one that is not run.
  afterAll(async () => {
    for (const name of benches.keys()) await end(name);
  });

  describe.sequential.each(byName(table.rows))("%s", (_, row) => {
    const { revision } = row;
    let bench: Bench;
    let client: Client;
    beforeAll(async () => {
      const name = benchOf(row);
      bench = benches.get(name) ?? (await startBench(table.front, table.back, row.server));
      benches.set(name, bench);
      client = await bench.connect(revision);
    });
    afterAll(async () => {
      await client?.close();
      if (isLast(row)) await end(benchOf(row));
    });

    test.for(provenOf(table, row))("%s", async (feature, { expect }) => {
      await proofs[feature]({ bench, client, revision, nonce: `n${++nonces}`, expect });
    });
  });
});
