// Tasks that begin at one replica, and are asked for at another.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import type { ClientTask } from "../../packages/client/src/client/tasks.ts";
import { createTaskCaller } from "../gateway/support/task-caller.ts";
import { startReplicas, type TestReplicas } from "./support/replicas.ts";
import { createToldServer, type ToldServer } from "./support/servers.ts";

const handlers = {
  elicit: ({ message }: { readonly message?: unknown }) => ({
    action: "accept" as const,
    content: { name: `Ada ${String(message)}` },
  }),
};

const kinds = {
  "that the gateway hosts for a server over HTTP": { era: "legacy", isHttp: true, sharing: "shared" },
  "that the gateway hosts for a process": { era: "legacy", isHttp: false, sharing: "shared" },
  "that the gateway hosts for a process of its caller": {
    era: "legacy",
    isHttp: false,
    sharing: "perSession",
  },
  "of a server over HTTP": { era: "modern", isHttp: true, sharing: "shared" },
  "of a process": { era: "modern", isHttp: false, sharing: "shared" },
  "of a process of its caller": { era: "modern", isHttp: false, sharing: "perSession" },
} as const;

describe.each(Object.entries(kinds))("a task %s", (_, { era, isHttp, sharing }) => {
  let told: ToldServer;
  let replicas: TestReplicas;
  let clients: readonly Client[];

  beforeAll(async () => {
    told = createToldServer(era);
    const up = isHttp ? await told.startHttp() : told.entry;
    replicas = await startReplicas(3, { mcpServers: { up }, junctor: { servers: { up: { sharing } } } });
    const options = { revision: "2026-07-28", handlers, tasks: true, eras: createEraCache() } as const;
    clients = await Promise.all(replicas.replicas.map(({ url }) => connect(url, options)));
  });
  afterAll(async () => {
    for (const client of clients ?? []) await client.close();
    await replicas?.[Symbol.asyncDispose]();
    told?.[Symbol.dispose]();
  });

  const start = async (at: number, tool: string, nonce: string): Promise<string> => {
    const started = await clients[at]!.startTool(tool, { nonce });
    if (started.kind !== "task") throw new Error("The call is not a task");
    return started.task.ref;
  };
  const taskAt = (replica: number, ref: string): ClientTask => clients[replica]!.task(ref);

  test("is the same at each replica, wherever it began", async () => {
    for (const [home] of clients.entries()) {
      const nonce = `n${home}`;
      const ref = await start(home, "up__work", nonce);
      for (const [other] of clients.entries())
        expect(await taskAt(other, ref).result()).toMatchObject({ content: [{ text: `worked ${nonce}` }] });
      expect(told.count("run", nonce)).toBe(1);
    }
  });

  test("is answered by any replica", async () => {
    for (const [home] of clients.entries()) {
      const nonce = `asks${home}`;
      const ref = await start(home, "up__survey", nonce);
      const other = (home + 1) % 3;
      await expect.poll(async () => (await taskAt(other, ref).get()).status).toBe("input_required");
      const answered = await taskAt((home + 2) % 3, ref).result();
      expect(answered).toMatchObject({ content: [{ text: `Ada ${nonce}` }] });
      expect((await taskAt(other, ref).get()).status).toBe("completed");
      expect(told.count("run", nonce)).toBe(1);
    }
  });

  test("is followed for a caller that knows no tasks, whichever replica it comes back to", async () => {
    const options = { revision: "2026-07-28", handlers, tasks: false, eras: createEraCache() } as const;
    await using client = await connect(replicas.url, options);
    for (const nonce of ["one", "two", "three"]) {
      const answered = await client.callTool("up__survey", { nonce: `untold-${nonce}` });
      expect(answered).toMatchObject({ content: [{ text: `Ada untold-${nonce}` }] });
      expect(told.count("run", `untold-${nonce}`)).toBe(1);
    }
  });

  test("notifies listeners at any replica", async () => {
    const ref = await start(0, "up__survey", "heard");
    const callers = replicas.replicas.map(({ url }) => createTaskCaller(url));
    const over = new AbortController();
    const ends = callers.map(async ({ listen }) => {
      for await (const { method, params } of listen({ taskIds: [ref] }, over.signal))
        if (method === "notifications/tasks" && params["status"] === "completed") return params["taskId"];
      return undefined;
    });
    await taskAt(1, ref).result();
    expect(await Promise.all(ends)).toEqual([ref, ref, ref]);
    over.abort();
  });

  test("is cancelled by any replica", async () => {
    for (const [home] of clients.entries()) {
      const ref = await start(home, "up__survey", `cancelled${home}`);
      await taskAt((home + 1) % 3, ref).cancel();
      for (const [other] of clients.entries())
        expect((await taskAt(other, ref).get()).status).toBe("cancelled");
    }
  });
});

test("a task of a replica that is gone has an outcome that is unknown", async () => {
  using told = createToldServer("legacy");
  const up = await told.startHttp();
  await using replicas = await startReplicas(2, { mcpServers: { up } });
  const options = { revision: "2026-07-28", tasks: true, eras: createEraCache() } as const;
  const [first, second] = await Promise.all(replicas.replicas.map(({ url }) => connect(url, options)));
  const started = await first!.startTool("up__work", { nonce: "gone" });
  if (started.kind !== "task") throw new Error("The call is not a task");
  const { ref } = started.task;
  expect((await second!.task(ref).get()).ref).toBe(ref);
  await first!.close();
  await replicas.replicas[0]![Symbol.asyncDispose]();
  const look = (): Promise<unknown> =>
    second!
      .task(ref)
      .get()
      .catch((error: unknown) => error);
  await expect
    .poll(look)
    .toMatchObject({ data: { code: "upstream.abandoned", delivery: "outcome_unknown", server: "up" } });
  await second!.close();
});
