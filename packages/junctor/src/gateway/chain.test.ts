import { expect, test } from "vitest";
import { callTool, toProvider } from "../../../../test/support/use-provider.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import { withMiddleware } from "../../../core/src/provider/middleware.ts";
import type { OwnerOf } from "../../../server/src/middleware/audit-log.ts";
import { createRegistry } from "../../../server/src/registry/registry.ts";
import { silentLog } from "../log/log.ts";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import { logCalls } from "./chain.ts";

test("a call that is answered at once is logged at once, and answered without a promise", () => {
  const lines: [object, string][] = [];
  const log = {
    ...silentLog,
    debug: (facts: object, text: string): void => void lines.push([facts, text]),
  };
  const outcome = { kind: "complete", result: RawJson.fromText('{"content":[]}') } as const;
  const atOnce = toProvider([], () => outcome);
  const clock = createVirtualClock(1_000_000);
  const ownerOf: OwnerOf = ({ name }) => ({ server: "one", ownName: name });
  const provider = withMiddleware(atOnce, [logCalls({ log, clock, ownerOf })], { clock });
  expect(callTool(provider, "hi")).toBe(outcome);
  expect(lines).toMatchObject([[{ tool: "hi", server: "one", outcome: "ok", ms: 0 }, "call of hi: ok"]]);
});

test("no more of a made-up name is logged than a name may have", async () => {
  const lines: string[] = [];
  const log = { ...silentLog, debug: (_: object, text: string): void => void lines.push(text) };
  const middleware = logCalls({ log, clock: createVirtualClock(0), ownerOf: () => undefined });
  const provider = withMiddleware(createRegistry(), [middleware]);
  const name = `${"x".repeat(255)}😀${"x".repeat(100_000)}`;
  await expect(callTool(provider, name)).rejects.toThrow("not found");
  expect(lines).toEqual([`call of ${"x".repeat(255)}: refused`]);
});
