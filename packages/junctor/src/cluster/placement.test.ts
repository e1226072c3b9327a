import { expect, test } from "vitest";
import type { Client } from "../../../client/src/client/client.ts";
import { StoreError } from "../../../core/src/errors/index.ts";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import { joinCluster } from "./membership.ts";
import { createMemoryClusterStore } from "./memory-store.ts";
import { ServerPlacement } from "./placement.ts";
import { listenTrunk } from "./trunk.ts";

test("a server is opened when a young engine gives leases, unless the wait is given up before", async () => {
  const clock = createVirtualClock(1000);
  const memory = createMemoryClusterStore({ clock });
  let claims = 0;
  const claim: typeof memory.claim = async (...args) => {
    claims++;
    if (clock.now() < 11_000) throw new StoreError("store.starting", "The store was started a moment ago");
    return memory.claim(...args);
  };
  const listen = { kind: "tls", host: "127.0.0.1", port: 0 } as const;
  await using trunk = await listenTrunk({ listen, keys: [], onWarning: () => {} });
  const { address } = trunk;
  const membership = await joinCluster({ store: { ...memory, claim }, address, version: "1", clock });
  const placement = new ServerPlacement({ membership, trunk, clock });
  const opened: string[] = [];
  const place = (name: string): ReturnType<typeof placement.place> =>
    placement.place(name, async () => {
      opened.push(name);
      return { close: () => Promise.resolve() } as Client;
    });

  const [patient, hasty] = [new AbortController(), new AbortController()];
  const opening = place("patient")({ signal: patient.signal });
  const givenUp = place("hasty")({ signal: hasty.signal });
  await clock.advance(5000);
  hasty.abort(new Error("the call timed out"));
  await expect(givenUp).rejects.toThrow("the call timed out");
  const before = claims;
  await clock.advance(4500);
  expect(opened).toEqual([]);
  expect(claims - before).toBe(18);
  await clock.advance(1000);
  await opening;
  expect(opened).toEqual(["patient"]);
  const left = membership[Symbol.asyncDispose]();
  await clock.advance(1000);
  await left;
});
