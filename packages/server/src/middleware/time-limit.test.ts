import { describe, expect, test } from "vitest";
import { callTool } from "../../../../test/support/use-provider.ts";
import { TimeoutError, ToolError } from "../../../core/src/errors/index.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import { type Middleware, withMiddleware } from "../../../core/src/provider/middleware.ts";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { createRegistry } from "../registry/registry.ts";
import { limitTime } from "./limits.ts";

const limits = { ms: 1000, tools: { "slow_*": 5000, slow_but_short: 2000 } };

function stall(name: string, middlewares: readonly Middleware[]) {
  const clock = createVirtualClock();
  const registry = createRegistry();
  registry.register(name, {}, () => new Promise<string>(() => {}));
  const provider = withMiddleware(registry, middlewares, { clock });
  const outcome = (async () => callTool(provider, name, {}, createCallContext()))();
  const ended = outcome.then(
    () => undefined,
    (error: unknown) => error,
  );
  return { clock, ended };
}

describe("limitTime", () => {
  test.each([
    ["any", 1000],
    ["slow_report", 5000],
    ["slow_but_short", 2000],
  ])("stops %s after %i ms, and tells the model", async (name, ms) => {
    const { clock, ended } = stall(name, [limitTime(limits)]);
    await clock.advance(ms - 1);
    expect(clock.sleeping).toBe(1);
    await clock.advance(1);
    const error = await ended;
    expect(error).toBeInstanceOf(ToolError);
    expect(error).toMatchObject({
      message: `${name} was not done after ${ms / 1000} s and was stopped. It may have had effects.`,
      cause: new TimeoutError("total", ms),
    });
    expect(clock.sleeping).toBe(0);
  });

  test("tells of its own limit only", async () => {
    const own: Middleware = { beforeCall: (call) => ({ ...call, timeoutMs: 10 }) };
    const { clock, ended } = stall("any", [limitTime(limits), own]);
    await clock.advance(10);
    expect(await ended).toEqual(new TimeoutError("total", 10));
  });

  test.each([0, -1, Number.NaN])("of %d is refused", (ms) => {
    expect(() => limitTime({ ms })).toThrow("positive number of milliseconds");
    expect(() => limitTime({ ms: 1, tools: { a: ms } })).toThrow('tools["a"]');
  });
});
