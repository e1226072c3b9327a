import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { systemClock } from "../../packages/core/src/async/clock.ts";
import { parseConfigValue } from "../../packages/junctor/src/config/parse-config.ts";
import { startGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import type { Gateway, RunningGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { SharedUpstreams } from "../../packages/junctor/src/servers/upstream-factory.ts";
import { callTool, listTools } from "../support/use-provider.ts";

const quick = fileURLToPath(new URL("../fixtures/children/quick.mjs", import.meta.url));

const parse = (own: object, ...args: readonly string[]) =>
  parseConfigValue(
    {
      mcpServers: { files: { command: process.execPath, args: [quick, "--tools=read,write", ...args] } },
      junctor: { servers: { files: own } },
    },
    { file: "junctor.json", env: {} },
  );

const start = (shared: SharedUpstreams, own: object, ...args: readonly string[]): Promise<RunningGateway> =>
  startGateway(parse(own, ...args), { shared, unnamed: "trusted" });

const namesOf = async ({ provider }: Gateway): Promise<readonly string[]> =>
  (await listTools(provider)).map(({ name }) => name);

/** Every tool answers with the id of the server's process. */
async function call({ provider }: Gateway, name: string): Promise<unknown> {
  const answer = await callTool(provider, name);
  return answer.kind === "complete" ? JSON.parse(answer.result.bytes.toString()) : answer;
}

test("gateways that share a process each have the names and rules of their own config", async () => {
  await using shared = new SharedUpstreams(systemClock);
  await using all = await start(shared, {});
  await using some = await start(shared, { deny: ["write"], prefix: "docs", record: true });
  await Promise.all([all.ready, some.ready]);
  expect(await namesOf(all)).toEqual(["files__read", "files__write"]);
  expect(await namesOf(some)).toEqual(["docs__read"]);
  expect(await call(some, "docs__read")).toEqual(await call(all, "files__write"));
  for (const name of ["docs__write", "files__write"])
    await expect(call(some, name)).rejects.toMatchObject({ code: "provider.not_found" });
  expect([all, some].map((gateway) => gateway.status()[0]?.tools)).toEqual([2, 1]);
  expect([all, some].map(({ controls }) => controls.isRecorded("files"))).toEqual([false, true]);
});

test("an edit of one gateway's rules changes nothing in the other", async () => {
  await using shared = new SharedUpstreams(systemClock);
  await using one = await start(shared, {});
  await using other = await start(shared, {});
  await Promise.all([one.ready, other.ready]);
  await one.apply(parse({ deny: ["write"] }));
  expect(await namesOf(one)).toEqual(["files__read"]);
  expect(await namesOf(other)).toEqual(["files__read", "files__write"]);
  expect(await call(one, "files__read")).toEqual(await call(other, "files__write"));
});

test("each gateway that shares a process can tell what it wrote", async () => {
  await using shared = new SharedUpstreams(systemClock);
  const args = ["--wait-for=/nowhere", "--chatter"];
  await using one = await start(shared, {}, ...args);
  await using other = await start(shared, {}, ...args);
  for (const gateway of [one, other])
    await expect.poll(() => gateway.status()[0]?.said).toContain("installing");
});

test("gateways that treat tasks in other ways do not share a process", async () => {
  await using shared = new SharedUpstreams(systemClock);
  await using one = await start(shared, {});
  await using other = await start(shared, { tasks: "relay" });
  await Promise.all([one.ready, other.ready]);
  expect(await call(one, "files__read")).not.toEqual(await call(other, "files__read"));
});
