// What is in the log of a gateway whose server is dead: each change once, however often it is tried and called.

import { once } from "node:events";
import { expect, test } from "vitest";
import { callTool } from "../support/use-provider.ts";
import { type LogLine, startTestGateway, type TestGateway } from "./support/gateway.ts";
import { deadServer, startSdkServer } from "./support/servers.ts";

const isTold = ({ level }: LogLine): boolean => level !== "debug";

/** The lines above debug, each as its text and reason. */
const toldBy = ({ log }: TestGateway): readonly string[] =>
  log
    .filter(isTold)
    .map(({ text, facts }) => `${text} ${(facts["reason"] as string | undefined) ?? ""}`.trim());

/** Calls a tool of the dead server until it was tried so many times again. */
async function callUntilTried({ gateway, log }: TestGateway, name: string, tries: number): Promise<number> {
  const starts = (): number => log.filter(({ text }) => text.endsWith("is starting")).length;
  let failed = 0;
  while (starts() < tries) {
    await Promise.resolve(callTool(gateway.provider, name)).catch(() => failed++);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return failed;
}

test("a command that ends at once is one line", async () => {
  await using started = await startTestGateway({ mcpServers: { dead: deadServer } });
  expect(await callUntilTried(started, "dead__any", 3)).toBeGreaterThan(0);
  expect(toldBy(started)).toEqual(["dead is down it exited with code 3"]);
});

test.each(["v1", "v2"] as const)(
  "an HTTP server (%s) that is killed is a line for each thing that broke",
  async (generation) => {
    const server = await startSdkServer(generation);
    await using started = await startTestGateway({ mcpServers: { dead: server.entry } });
    expect(toldBy(started)).toEqual(["dead is up"]);
    const exited = once(server.child, "exit");
    server.child.kill("SIGKILL");
    await exited;
    expect(await callUntilTried(started, "dead__echo", 4)).toBeGreaterThan(0);
    const told = toldBy(started);
    // One for the server, and one for each way in which its stream of changes failed.
    expect(told.filter((line) => line.startsWith("dead is "))).toEqual([
      "dead is up",
      "dead is down nothing listens at its address (ECONNREFUSED)",
    ]);
    expect(new Set(told).size).toBe(told.length);
    expect(told.length).toBeLessThanOrEqual(4);
  },
);
