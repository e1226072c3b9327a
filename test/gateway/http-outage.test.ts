// A server over HTTP that was away for a while. The sockets are real; the time is a test's, as far as it is waited for.
import { setTimeout as wait } from "node:timers/promises";
import { expect, test } from "vitest";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import type { Gateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { freePort } from "../support/free-ports.ts";
import { callTool } from "../support/use-provider.ts";

function listen(port: number): Promise<HttpListener> {
  const registry = createRegistry();
  registry.register("work", {}, () => "done");
  const server = createServer(registry, { name: "far", version: "1.0.0" });
  return listenHttp(server, { port, graceMs: 0 });
}

async function call({ provider }: Gateway): Promise<string> {
  try {
    return (await callTool(provider, "far__work")).kind;
  } catch (error) {
    return (error as { code: string }).code;
  }
}

test.each([3, 20])("a server that was away for %i s is used within 2 s of its return", async (awayS) => {
  const clock = createVirtualClock(1_000_000);
  const port = await freePort();
  const first = await listen(port);
  const gateway = await createGateway({ mcpServers: { far: { url: first.url } } }, { clock });
  await gateway.ready;
  expect(await call(gateway)).toBe("complete");
  await first.close();
  /** Lets time pass in small steps, but not while a socket is at work, which takes time of another kind. */
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 100) {
      await clock.advance(100);
      do await wait(1);
      while (gateway.status().some(({ status }) => status === "starting"));
    }
  };
  const outcomes = [await Promise.race([call(gateway), pass(10_000).then(() => "late")])];
  await pass(awayS * 1000 - 1000);
  // Most callers give up; one asks right before the return, so that the last failure is fresh.
  outcomes.push(await Promise.race([call(gateway), pass(4000).then(() => "late")]));
  expect(outcomes.every((outcome) => outcome.startsWith("upstream."))).toBe(true);
  await using _back = await listen(port);
  const back = call(gateway);
  const returnedAt = clock.now();
  let usedAt = Number.NaN;
  void back.then(() => (usedAt = clock.now()));
  const isUp = (): boolean => gateway.status().some(({ status }) => status === "up");
  while (!isUp() && clock.now() < returnedAt + 60_000) await pass(100);
  expect(await back).toBe("complete");
  expect(usedAt - returnedAt).toBeLessThanOrEqual(2000);
  await gateway.close();
});
