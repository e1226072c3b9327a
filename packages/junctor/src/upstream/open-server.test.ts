import { expect, test } from "vitest";
import { toServerConfig } from "../../../../test/support/fake-source.ts";
import { QuestionHabits } from "../../../client/src/client/question-router.ts";
import { ConnectError } from "../../../core/src/errors/index.ts";
import { nothingDeclared } from "../../../core/src/mcp/extension.ts";
import { toRelayable } from "../../../core/src/mcp/revision.ts";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import type { CallerGroup } from "./caller-groups.ts";
import { createConnectionFactory } from "./open-server.ts";

const everyone: CallerGroup = {
  owner: undefined,
  holder: undefined,
  era: undefined,
  declares: toRelayable({}, "2026-07-28"),
  extensions: nothingDeclared,
};

test("a server that does not answer in time gets twice as much each time, up to eight times", async () => {
  const clock = createVirtualClock(1_000_000);
  const given: (number | undefined)[] = [];
  const slow = toServerConfig("slow", { startTimeoutMs: 1000 });
  const createConnection = createConnectionFactory({
    config: slow,
    configNow: () => slow,
    connect: ({ connectTimeoutMs }) => {
      given.push(connectTimeoutMs);
      return Promise.reject(new ConnectError("slow", "no answer", { kind: "no_answer" }));
    },
    clock,
    habits: new QuestionHabits(),
  });
  await using connection = createConnection(everyone, { keepsAlive: true, report: () => {} });
  connection.start();
  for (let second = 0; second < 120 && given.length < 6; second++) await clock.advance(1000);
  expect(given).toEqual([1000, 2000, 4000, 8000, 8000, 8000]);
});

test("a server that may run elsewhere is looked for every two seconds, and started six times a minute", async () => {
  const clock = createVirtualClock(1_000_000);
  let isHere = false;
  let [looks, starts] = [0, 0];
  const placed = toServerConfig("placed");
  const createConnection = createConnectionFactory({
    config: placed,
    configNow: () => placed,
    connect: async ({ onOpen }) => {
      looks++;
      if (isHere) {
        onOpen?.();
        starts++;
      }
      throw new ConnectError("placed", "the replica that runs it cannot be reached");
    },
    clock,
    habits: new QuestionHabits(),
    isPlaced: true,
  });
  await using connection = createConnection(everyone, { keepsAlive: true, report: () => {} });
  connection.start();
  await clock.advance(40_000);
  expect(looks).toBeGreaterThanOrEqual(20);
  isHere = true;
  await clock.advance(50_000);
  expect(starts).toBe(6);
});
