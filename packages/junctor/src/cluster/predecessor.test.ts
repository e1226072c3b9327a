import { expect, test } from "vitest";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import { joinCluster, type Membership, type TrunkAddress } from "./membership.ts";
import { createMemoryClusterStore } from "./memory-store.ts";

const here: TrunkAddress = { kind: "tls", host: "10.0.0.2", port: 7781 };

test("a replica that listens where another one did says that the other has ended", async () => {
  const clock = createVirtualClock();
  await using store = createMemoryClusterStore({ clock });
  const join = async (address: TrunkAddress, ownClock = clock): Promise<Membership> => {
    const joining = joinCluster({ store, address, version: "1.0.0", clock: ownClock });
    await clock.advance(250);
    return joining;
  };
  await using other = await join({ ...here, host: "10.0.0.3" });
  // It is killed: its time stands still, and it gives nothing back.
  const killed = await join(here, createVirtualClock());
  const find = async (id: string): Promise<boolean> => {
    const looking = other.findAgain(id);
    await clock.advance(250);
    return (await looking) !== undefined;
  };
  expect(await find(killed.id)).toBe(true);
  await using next = await join(here);
  expect(await find(killed.id)).toBe(false);
  expect(await find(next.id)).toBe(true);
  expect(next.others.map(({ id }) => id)).toEqual([other.id]);
});

test("replicas with sockets of the same path are not taken for each other: they may be on two machines", async () => {
  const clock = createVirtualClock();
  await using store = createMemoryClusterStore({ clock });
  const address: TrunkAddress = { kind: "socket", path: "/run/junctor.sock" };
  await using one = await joinCluster({ store, address, version: "1.0.0", clock });
  await using two = await joinCluster({ store, address, version: "1.0.0", clock });
  expect(two.others.map(({ id }) => id)).toEqual([one.id]);
});
