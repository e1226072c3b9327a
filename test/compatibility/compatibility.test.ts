// Every cell of docs/compatibility.md: `node scripts/compatibility.mjs` runs them and writes the page.

import { afterAll, beforeAll, describe, test } from "vitest";
import type { Client } from "../../src/client/client.ts";
import type { EraName } from "../bridge/support/upstream.ts";
import { type Bench, startBench } from "./bench.ts";
import { provenOf, tables } from "./cells.ts";
import { proofs } from "./proofs.ts";

const byName = <Named extends { readonly name: string }>(
  all: readonly Named[],
): readonly (readonly [string, Named])[] => all.map((one) => [one.name, one]);

let nonces = 0;

// Tables know nothing of each other. The cells of a table come one after the other, as the calls of a user do.
describe.concurrent.each(byName(tables))("%s", (_, table) => {
  const benches = new Map<EraName, Bench>();
  beforeAll(async () => {
    const eras = new Set(table.rows.map(({ server }) => server));
    await Promise.all(
      [...eras].map(async (era) => benches.set(era, await startBench(table.front, table.back, era))),
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
      bench = benches.get(row.server)!;
      client = await bench.connect(revision);
    });
    afterAll(() => client?.close());

    test.for(provenOf(table, row))("%s", async (feature, { expect }) => {
      await proofs[feature]({ bench, client, revision, nonce: `n${++nonces}`, expect });
    });
  });
});
