import { expect, test } from "vitest";
import { createFakeClient, turn } from "../../../../test/support/fake-client.ts";
import type { Client } from "../../../client/src/client/client.ts";
import { createDeferred } from "../../../core/src/async/queue.ts";
import { NotFoundError } from "../../../core/src/errors/index.ts";
import type { Notice } from "../../../core/src/provider/provider.ts";
import { Watches } from "./pool.ts";

interface Server {
  readonly client: Client;
  readonly watched: string[];
  readonly events: string[];
}

/** A server that remembers what is watched; `refuses` says what it does not have. */
function createServer(refuses: () => readonly string[] = () => []): Server {
  const watched: string[] = [];
  const events: string[] = [];
  const { client } = createFakeClient({
    watch: async (uri) => {
      events.push(`watch ${uri}`);
      await turn();
      if (refuses().includes(uri)) throw new NotFoundError("resource", uri);
      watched.push(uri);
      return () => {
        events.push(`stop ${uri}`);
        watched.splice(watched.indexOf(uri), 1);
      };
    },
  });
  return { client, watched, events };
}

test("however many watch, the server gets one watch, which ends with the last of them", async () => {
  const { client, events, watched } = createServer();
  const watches = new Watches();
  const stops = await Promise.all([1, 2, 3].map(() => watches.add("x:1", client)));
  expect(events).toEqual(["watch x:1"]);
  stops[0]?.();
  stops[0]?.();
  stops[1]?.();
  await turn();
  expect(watched).toEqual(["x:1"]);
  expect(watches.size).toBe(1);
  stops[2]?.();
  await turn();
  expect(events).toEqual(["watch x:1", "stop x:1"]);
  expect(watches.size).toBe(0);
});

test("a server that refuses is nobody's watch, and is asked again by the next", async () => {
  let refuses = ["x:1"];
  const { client, events } = createServer(() => refuses);
  const watches = new Watches();
  const both = await Promise.allSettled([watches.add("x:1", client), watches.add("x:1", client)]);
  expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(watches.size).toBe(0);
  refuses = [];
  await watches.add("x:1", client);
  expect(events).toEqual(["watch x:1", "watch x:1"]);
});

test("a server without resources that can be watched says that there is none", async () => {
  const watches = new Watches();
  await expect(watches.add("x:1", createFakeClient().client)).rejects.toBeInstanceOf(NotFoundError);
  expect(watches.size).toBe(0);
});

test("a server that was restarted gets every watch again, and every resource may have changed", async () => {
  const missed: string[] = [];
  const watches = new Watches();
  const hear = (notice: Notice): void => void missed.push(notice.kind === "updated" ? notice.uri : "");
  const before = createServer();
  const after = createServer();
  const stop = await watches.add("x:1", before.client, hear);
  await watches.add("x:2", before.client, hear);
  watches.renew(after.client);
  await expect.poll(() => after.watched).toEqual(["x:1", "x:2"]);
  expect(missed).toEqual(["x:1", "x:2"]);
  stop();
  await turn();
  expect(after.watched).toEqual(["x:2"]);
  expect(before.events).not.toContain("stop x:1");
});

test("a server that no longer has a resource after a restart is asked again by the next watch", async () => {
  let refuses = ["x:1"];
  const watches = new Watches();
  const stop = await watches.add("x:1", createServer().client);
  const after = createServer(() => refuses);
  watches.renew(after.client);
  await expect.poll(() => after.events).toEqual(["watch x:1"]);
  await turn();
  refuses = [];
  await watches.add("x:1", after.client);
  expect(after.watched).toEqual(["x:1"]);
  stop();
  await turn();
  expect(watches.size).toBe(1);
});

test("a watch that is stopped before the server agreed leaves nothing watched", async () => {
  const agreed = createDeferred<void>();
  let isWatched = false;
  const { client } = createFakeClient({
    watch: async () => {
      await agreed.promise;
      isWatched = true;
      return () => (isWatched = false);
    },
  });
  const watches = new Watches();
  const renewed = createServer();
  const stop = await watches.add("x:1", renewed.client);
  watches.renew(client);
  stop();
  agreed.resolve();
  await turn();
  expect(isWatched).toBe(false);
  expect(watches.size).toBe(0);
});

test("a watch gets notices of what lies below as well, and of nothing else, until it is stopped", async () => {
  const { client, announce } = createFakeClient({ watch: async () => () => {} });
  const watches = new Watches();
  const heard: string[] = [];
  const stop = await watches.add("x:/a", client, (notice) => {
    if (notice.kind === "updated") heard.push(notice.uri);
  });
  for (const uri of ["x:/a", "x:/a/b", "x:/ab", "x:/b"]) announce({ uri });
  expect(heard).toEqual(["x:/a", "x:/a/b"]);
  stop();
  announce({ uri: "x:/a" });
  expect(heard).toHaveLength(2);
});
