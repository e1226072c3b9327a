import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HttpHandler } from "../../packages/server/src/http/handler.ts";
import { type Listening, listen } from "../support/http-tools.ts";
import { modern, modernPost } from "../support/http-wire.ts";
import { exchange, type RawReply, type RawRequest, RawSocket } from "../support/raw-http.ts";

// Regressions to own: CVE-2025-66414, -66416, CVE-2026-34742 (one handler missed), -42559, -35568.
// The routes come from the router itself, so that a new one is in the matrix before anybody thinks of it.

const methods = ["GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "PROPFIND"];
const body = JSON.stringify(modern("tools/list"));
const bodyHeaders = modernPost(modern("tools/list")).headers!;

type Attack = (port: number) => Pick<RawRequest, "host" | "headers" | "version">;

const hosts: { readonly [name: string]: Attack } = {
  "no Host in HTTP/1.0": () => ({ host: null, version: "1.0" }),
  "no Host in HTTP/1.1": () => ({ host: null }),
  "an empty Host": () => ({ host: "" }),
  "another site": () => ({ host: "evil.example" }),
  "another site with our port": (port) => ({ host: `evil.example:${port}` }),
  "no port": () => ({ host: "127.0.0.1" }),
  "localhost without a port": () => ({ host: "localhost" }),
  "the wrong port": (port) => ({ host: `127.0.0.1:${port + 1}` }),
  "port 80": () => ({ host: "127.0.0.1:80" }),
  "port 0": () => ({ host: "localhost:0" }),
  "a port with a leading zero": (port) => ({ host: `localhost:0${port}` }),
  "a subdomain that begins like localhost": (port) => ({ host: `localhost.evil:${port}` }),
  "a name that ends like localhost": (port) => ({ host: `evil-localhost:${port}` }),
  "a subdomain of localhost": (port) => ({ host: `x.localhost:${port}` }),
  "localhost with a dot at the end": (port) => ({ host: `localhost.:${port}` }),
  "an address as a subdomain": (port) => ({ host: `127.0.0.1.evil.example:${port}` }),
  "a short form of the address": (port) => ({ host: `127.1:${port}` }),
  "the address as one number": (port) => ({ host: `2130706433:${port}` }),
  "the address in hexadecimal": (port) => ({ host: `0x7f000001:${port}` }),
  "the address in octal": (port) => ({ host: `0177.0.0.1:${port}` }),
  "another loopback address": (port) => ({ host: `127.0.0.2:${port}` }),
  "all addresses": (port) => ({ host: `0.0.0.0:${port}` }),
  "the IPv6 loopback without brackets": (port) => ({ host: `::1:${port}` }),
  "the IPv6 loopback without a port": () => ({ host: "[::1]" }),
  "an IPv4 address mapped to IPv6": (port) => ({ host: `[::ffff:127.0.0.1]:${port}` }),
  "credentials before the host": (port) => ({ host: `evil@127.0.0.1:${port}` }),
  "two hosts in one header": (port) => ({ host: `127.0.0.1:${port}, evil.example` }),
  "a host with a path": (port) => ({ host: `127.0.0.1:${port}/evil` }),
  "Host twice, ours first": (port) => ({
    headers: [
      ["Host", "evil.example"],
      ["X-Port", `${port}`],
    ],
  }),
  "Host twice, ours last": (port) => ({ host: "evil.example", headers: [["host", `127.0.0.1:${port}`]] }),
  "Host twice, the same": (port) => ({ headers: [["HOST", `127.0.0.1:${port}`]] }),
};

const origin =
  (value: string): Attack =>
  () => ({ headers: [["Origin", value]] });

const origins: { readonly [name: string]: Attack } = {
  "another site": origin("https://evil.example"),
  "an opaque origin": origin("null"),
  "an opaque origin in another case": origin("NULL"),
  "an empty origin": origin(""),
  "localhost without a port": origin("http://localhost"),
  "a file": origin("file://"),
  "an extension": origin("chrome-extension://abcdef"),
  "no scheme": (port) => ({ headers: [["Origin", `127.0.0.1:${port}`]] }),
  "another scheme": (port) => ({ headers: [["Origin", `ws://127.0.0.1:${port}`]] }),
  "the wrong port": (port) => ({ headers: [["Origin", `http://127.0.0.1:${port + 1}`]] }),
  "a subdomain that begins like localhost": (port) => ({
    headers: [["Origin", `http://localhost.evil:${port}`]],
  }),
  "a short form of the address": (port) => ({ headers: [["Origin", `http://127.1:${port}`]] }),
  "credentials before the host": (port) => ({ headers: [["Origin", `http://evil@127.0.0.1:${port}`]] }),
  "a path after the origin": (port) => ({ headers: [["Origin", `http://127.0.0.1:${port}/`]] }),
  "two origins in one header": (port) => ({
    headers: [["Origin", `http://127.0.0.1:${port} https://evil.example`]],
  }),
  "Origin twice, ours first": (port) => ({
    headers: [
      ["Origin", `http://127.0.0.1:${port}`],
      ["Origin", "https://evil.example"],
    ],
  }),
  "Origin twice, the same": (port) => ({
    headers: [
      ["Origin", `http://127.0.0.1:${port}`],
      ["Origin", `http://127.0.0.1:${port}`],
    ],
  }),
};

let at: Listening;
let paths: readonly string[];
beforeAll(async () => {
  at = await listen();
  paths = [...Object.keys(new HttpHandler(at.server).routes), "/", "/nowhere"];
});
afterAll(() => at[Symbol.asyncDispose]());

/** Tries every route and method with it; gives back what was not refused. */
async function tryAll(attack: Attack, isAbout: "Host" | "Origin"): Promise<readonly string[]> {
  const served: string[] = [];
  let socket: RawSocket | undefined;
  for (const path of paths) {
    for (const method of methods) {
      const { headers = [], ...rest } = attack(at.port);
      if (socket === undefined || socket.socket.destroyed) socket = new RawSocket(at.port);
      const request = { method, path, headers: [...headers, ...bodyHeaders], body, ...rest };
      const reply = await socket.send(request).complete;
      if (!isRefusal(reply, isAbout, method)) served.push(`${method} ${path}: ${reply.status}`);
      if (reply.headers["connection"] === "close") {
        socket[Symbol.dispose]();
        socket = undefined;
      }
    }
  }
  socket?.[Symbol.dispose]();
  return served;
}

/** Node itself refuses a request of HTTP/1.1 without a Host. Ours is an error without an id that says what to do. */
function isRefusal(reply: RawReply, about: string, method: string): boolean {
  if (about === "Host" && reply.status === 400 && reply.body === "") return true;
  if (reply.status !== 403) return false;
  if (method === "HEAD") return true;
  const { id, error } = reply.json as { readonly id?: unknown; readonly error: { readonly message: string } };
  return id === undefined && error.message.startsWith(`The ${about} `);
}

test("the matrix covers the routes of the router", () => {
  expect(paths).toEqual(["/mcp", "/health", "/live", "/ready", "/sse", "/messages", "/", "/nowhere"]);
  expect(Object.keys({ ...hosts, ...origins }).length).toBeGreaterThanOrEqual(40);
});

describe("no route and no method serves a Host that is not ours", () => {
  test.each(Object.entries(hosts))("%s", async (_, attack) => {
    expect(await tryAll(attack, "Host")).toEqual([]);
  });
});

describe("no route and no method serves an Origin that is not ours", () => {
  test.each(Object.entries(origins))("%s", async (_, attack) => {
    expect(await tryAll(attack, "Origin")).toEqual([]);
  });
});

describe("ours are served", () => {
  test.each<[string, Attack]>([
    ["the address", (port) => ({ host: `127.0.0.1:${port}` })],
    ["localhost", (port) => ({ host: `localhost:${port}` })],
    ["localhost in capitals", (port) => ({ host: `LocalHost:${port}` })],
    ["the IPv6 loopback", (port) => ({ host: `[::1]:${port}` })],
    ["no Origin", () => ({})],
    ["the Origin of the address", (port) => ({ headers: [["Origin", `http://127.0.0.1:${port}`]] })],
    ["the Origin of localhost", (port) => ({ headers: [["oRiGiN", `http://localhost:${port}`]] })],
    ["the Origin of the IPv6 loopback", (port) => ({ headers: [["Origin", `http://[::1]:${port}`]] })],
  ])("%s", async (_, attack) => {
    const { headers = [], ...rest } = attack(at.port);
    const reply = await exchange(at.port, { headers: [...headers, ...bodyHeaders], body, ...rest });
    expect(reply.status).toBe(200);
    expect((await exchange(at.port, { method: "GET", path: "/health", ...attack(at.port) })).status).toBe(
      200,
    );
  });

  test("hosts and origins that were added, and still no others", async () => {
    const added = { allowedHosts: ["mcp.example.com"], allowedOrigins: ["https://app.example.com"] };
    await using other = await listen(added);
    const statusOf = async (host: string | undefined, origin: string): Promise<number> => {
      const request = { path: "/health", method: "GET", headers: [["Origin", origin] as const] };
      return (await exchange(other.port, host === undefined ? request : { ...request, host })).status;
    };
    expect(await statusOf("mcp.example.com", "https://app.example.com")).toBe(200);
    expect(await statusOf("MCP.example.com", "https://mcp.example.com")).toBe(200);
    expect(await statusOf("mcp.example.com", "https://evil.example")).toBe(403);
    expect(await statusOf("mcp.example.com:8443", "https://app.example.com")).toBe(403);
    expect(await statusOf(undefined, "https://app.example.com.evil.example")).toBe(403);
  });
});
