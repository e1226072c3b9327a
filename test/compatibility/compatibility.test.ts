// Every cell of docs/compatibility.md: `node scripts/compatibility.mjs` runs them and writes the page.

import { afterAll, beforeAll, describe, test } from "vitest";
import type { Client } from "../../src/client/client.ts";
import type { EraName } from "../bridge/support/upstream.ts";
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
  beforeAll(async () => {
    const eras = new Map(table.rows.map((row): [string, EraName] => [benchOf(row), row.server]));
    await Promise.all(
      [...eras].map(async ([name, era]) => benches.set(name, await startBench(table.front, table.back, era))),
    );
  });
  afterAll(async () => {
    await Promise.all([...benches.values()].map((bench) => bench[Symbol.asyncDispose]()));
  });

  describe.sequential.each(byName(table.rows))("%s", (_, row) => {
    const { revision } = row;
    let bench: Bench;
    let client: Client;
    beforeAll(async () => {
      bench = benches.get(benchOf(row))!;
      client = await bench.connect(revision);
    });
    afterAll(() => client?.close());

    test.for(provenOf(table, row))("%s", async (feature, { expect }) => {
      await proofs[feature]({ bench, client, revision, nonce: `n${++nonces}`, expect });
    });
  });
});
