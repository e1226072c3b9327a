import { expect, test } from "vitest";
import { toServerConfig } from "../../../test/support/fake-source.ts";
import { AskHabits } from "../../client/ask-habits.ts";
import { ConnectError } from "../../errors/connect-error.ts";
import { nothingDeclared } from "../../mcp/extension.ts";
import { toRelayable } from "../../mcp/revision.ts";
import { createVirtualClock } from "../../testing/virtual-clock.ts";
import { createLineFactory } from "./line-factory.ts";

test("a server that does not answer in time gets twice as much each time, up to eight times", async () => {
  const clock = createVirtualClock(1_000_000);
  const given: (number | undefined)[] = [];
  const createLine = createLineFactory({
    config: toServerConfig("slow", { startTimeoutMs: 1000 }),
    connect: ({ connectTimeoutMs }) => {
      given.push(connectTimeoutMs);
      return Promise.reject(new ConnectError("slow", "no answer", { kind: "no_answer" }));
    },
    clock,
    habits: new AskHabits(),
    onWaiting: () => () => {},
  });
  await using line = createLine(
    {
      owner: undefined,
      holder: undefined,
      era: undefined,
      declares: toRelayable({}, "2026-07-28"),
      extensions: nothingDeclared,
    },
    { keepsAlive: true, onHealth: () => {} },
  );
  line.start();
  for (let second = 0; second < 120 && given.length < 6; second++) await clock.advance(1000);
  expect(given).toEqual([1000, 2000, 4000, 8000, 8000, 8000]);
});
