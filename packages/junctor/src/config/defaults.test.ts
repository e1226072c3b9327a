import { describe, expect, test } from "vitest";
import type { GatewayConfig } from "./config.ts";
import { parseConfigValue } from "./parse-config.ts";

const a = { command: "a" };
const fromValue = (value: unknown): GatewayConfig => parseConfigValue(value, { file: "config", env: {} });

describe("junctor.defaults", () => {
  const defaults = {
    start: "lazy",
    sharing: "exclusive",
    era: "modern",
    instances: 1,
    workspace: "auto",
    startTimeoutMs: 1,
    maxStartMs: 9,
    timeoutMs: 2,
    maxTotalMs: 3,
    answerWithinMs: 30_000,
    maxConnections: 4,
    idleStopMs: 5,
    allow: ["read_*"],
    deny: ["read_x"],
  };

  test("hold for every server that does not say otherwise", () => {
    const own = {
      start: "eager",
      sharing: "shared",
      era: "modern",
      instances: 1,
      workspace: "auto",
      startTimeoutMs: 10,
      timeoutMs: 20,
      maxTotalMs: 30,
      deny: [],
    };
    const config = fromValue({ mcpServers: { a, b: a }, junctor: { defaults, servers: { b: own } } });
    expect(config.servers).toMatchObject([
      { name: "a", launch: { kind: "command", command: "a", args: [] }, prefix: "a", tools: {}, ...defaults },
      {
        name: "b",
        launch: { kind: "command", command: "a", args: [] },
        prefix: "b",
        tools: {},
        ...defaults,
        ...own,
        idleStopMs: undefined,
      },
    ]);
    expect(config.warnings).toEqual([]);
  });

  test("may be for a kind of server that is not there", () => {
    const config = fromValue({
      mcpServers: { a },
      junctor: { defaults: { idleStopMs: 5, maxConnections: 2 } },
    });
    expect(config.servers).toMatchObject([{ start: "eager", idleStopMs: undefined, maxConnections: 2 }]);
    expect(config.warnings).toEqual([]);
  });

  test("that never take effect are reported once", () => {
    const config = fromValue({
      mcpServers: { a, b: a },
      junctor: { defaults: { timeoutMs: 4_000_000 } },
    });
    expect(config.warnings).toEqual([
      {
        path: "junctor.defaults.timeoutMs",
        message: "is never reached: maxTotalMs is 1800000, which is less",
      },
    ]);
  });

  test("make the settings of a server right that would be wrong alone", () => {
    const config = fromValue({
      mcpServers: { a },
      junctor: { defaults: { start: "lazy" }, servers: { a: { idleStopMs: 7 } } },
    });
    expect(config.servers).toMatchObject([{ start: "lazy", idleStopMs: 7 }]);
  });
});
