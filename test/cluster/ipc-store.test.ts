import { MessageChannel, type MessagePort } from "node:worker_threads";
import { expect, test } from "vitest";
import { createIpcStore, type IpcPort, serveStore } from "../../packages/junctor/src/cluster/ipc-store.ts";
import { createMemoryClusterStore } from "../../packages/junctor/src/cluster/memory-store.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { describeStore, type OpenStores } from "../support/store-suite.ts";

function toIpcPort(port: MessagePort): IpcPort {
  return {
    send: (message, callback) => {
      port.postMessage(message);
      callback(null);
      return true;
    },
    on: (event, listener) => port.on(event, listener),
    once: (_event, listener) => port.once("close", listener),
  };
}

/** The store of a primary, and two workers that use it. */
function openStores(): OpenStores & { readonly cut: () => void } {
  const clock = createVirtualClock();
  const store = createMemoryClusterStore({ clock });
  const channels = [new MessageChannel(), new MessageChannel()];
  const [a, b] = channels.map(({ port1, port2 }) => {
    serveStore(toIpcPort(port2), store);
    return createIpcStore(toIpcPort(port1));
  });
  if (a === undefined || b === undefined) throw new Error("there are two");
  const cut = (): void => channels.forEach(({ port1 }) => port1.close());
  return {
    a,
    b,
    cut,
    pass: clock.advance,
    [Symbol.asyncDispose]: async () => cut(),
  };
}

describeStore("the store of the primary, over IPC,", async () => openStores());

test("the end of the primary rejects what waits and what comes later", async () => {
  await using stores = openStores();
  const waiting = stores.a.read("key");
  stores.cut();
  await expect(waiting).rejects.toMatchObject({ code: "store.unreachable" });
  await expect(stores.a.claim("key", "A", 1000)).rejects.toMatchObject({ code: "store.unreachable" });
});

test("no more than 4,096 operations wait for a primary that does not answer", async () => {
  const { port1, port2 } = new MessageChannel();
  const store = createIpcStore(toIpcPort(port1));
  const outcomes = Array.from({ length: 4100 }, () =>
    store.read("key").then(
      () => "done",
      (error: unknown) => (error as { code: string }).code,
    ),
  );
  port2.close();
  const codes = await Promise.all(outcomes);
  expect(codes.filter((code) => code === "store.full")).toHaveLength(4);
  expect(codes.filter((code) => code === "store.unreachable")).toHaveLength(4096);
});

test("a worker that ended is not a replica at once, and has its leases until its children are gone", async () => {
  const { port1, port2 } = new MessageChannel();
  const store = createMemoryClusterStore({ clock: createVirtualClock() });
  const served = serveStore(toIpcPort(port2), store);
  const own = createIpcStore(toIpcPort(port1));
  await own.register("one", "facts", 60_000);
  await own.claim("own:a", "one", 60_000);
  await own.claim("own:b", "one", 60_000);
  await own.release("own:b", "one");
  await store.claim("own:b", "two", 60_000);
  await served.unregister();
  expect(await store.register("two", "facts", 60_000)).toEqual(new Map([["two", "facts"]]));
  expect(await store.claim("own:a", "two", 60_000)).toBe("one");
  // Its last words are read late.
  await expect(own.register("one", "facts", 60_000)).rejects.toMatchObject({ code: "store.unreachable" });
  await served.release();
  expect(await store.claim("own:a", "two", 60_000)).toBe("two");
  expect(await store.claim("own:b", "three", 60_000)).toBe("two");
  port1.close();
});
