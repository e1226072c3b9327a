import { describe, expect, test } from "vitest";
import { createGuard, type GuardOptions } from "./guard.ts";
import type { HttpRequest } from "./reply.ts";

// What browsers and attackers send over real sockets is in test/http/guard-matrix.test.ts.

function judge(
  options: GuardOptions,
  host: string | undefined,
  origin?: string,
  port: number | undefined = 7780,
): boolean {
  const headers: { readonly [name: string]: string | undefined } = { host, origin };
  const request = {
    header: (name: string) => headers[name],
    hostCount: host === undefined ? 0 : 1,
    localPort: port,
  } as HttpRequest;
  return createGuard(options)(request) === undefined;
}

describe("the guard of a listener", () => {
  test.each<[string, GuardOptions, string | undefined, number | undefined, boolean]>([
    ["its own address", { host: "127.0.0.1" }, "127.0.0.1:7780", 7780, true],
    ["another loopback address it was bound to", { host: "127.0.0.2" }, "127.0.0.2:7780", 7780, true],
    ["the IPv6 address it was bound to", { host: "::1" }, "[::1]:7780", 7780, true],
    ["an IPv6 address in any case", { host: "FD00::A" }, "[fd00::a]:7780", 7780, true],
    ["its own address with another port", { host: "127.0.0.1" }, "127.0.0.1:80", 7780, false],
    ["a port alone", { host: "127.0.0.1" }, ":7780", 7780, false],
    ["a name without the port on port 80", { host: "127.0.0.1" }, "localhost", 80, true],
    ["a name without the port on another", { host: "127.0.0.1" }, "localhost", 7780, false],
    ["the address of an open bind", { host: "192.0.2.7" }, "192.0.2.7:7780", 7780, true],
    ["localhost on an open bind", { host: "192.0.2.7" }, "localhost:7780", 7780, false],
    [
      "a name that was allowed, in any case",
      { allowedHosts: ["MCP.Example.com"] },
      "mcp.example.COM",
      7780,
      true,
    ],
    ["a name that was allowed, with another port", { allowedHosts: ["a:1"] }, "a:2", 7780, false],
    ["no host", {}, undefined, 7780, false],
    ["an allowed name where the port is not known", { allowedHosts: ["a"] }, "a", undefined, true],
    ["localhost where the port is not known", {}, "localhost", undefined, false],
  ])("%s: %o %s on %s is served: %s", (_, options, host, port, isServed) => {
    expect(judge(options, host, undefined, port)).toBe(isServed);
  });

  test.each([
    ["http://localhost:7780", true],
    ["https://localhost:7780", true],
    ["https://app.example.com", true],
    ["HTTPS://APP.example.com", true],
    ["https://app.example.com:8443", false],
    ["http://app.example.com", false],
    ["null", false],
    ["", false],
  ])("the origin %j is served: %s", (origin, isServed) => {
    const options = { host: "127.0.0.1", allowedOrigins: ["https://app.example.com"] };
    expect(judge(options, "127.0.0.1:7780", origin)).toBe(isServed);
  });

  test("says what to do about it", () => {
    const request = { header: () => "x", hostCount: 1, localPort: 1 } as unknown as HttpRequest;
    expect(createGuard({})(request)).toContain("allowedHosts");
  });
});
