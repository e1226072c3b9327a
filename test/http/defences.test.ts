import { describe, expect, test } from "vitest";
import { HttpHandler } from "../../packages/server/src/http/handler.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createHttpTools, listen } from "../support/http-tools.ts";
import {
  both,
  connectLegacy,
  initializeOf,
  json,
  legacyCall,
  modern,
  modernCall,
  modernPost,
  postOf,
  sse,
  toPairs,
} from "../support/http-wire.ts";
import { exchange, RawSocket, toBytes } from "../support/raw-http.ts";

const list = modernPost(modern("tools/list"));

describe("a body", () => {
  test("is refused by its announced length before any of it came", async () => {
    await using at = await listen();
    const headers = [...list.headers!, ["content-length", String(4 * 1024 * 1024 + 1)] as const];
    const reply = await exchange(at.port, { headers });
    expect(reply.status).toBe(413);
    expect(reply.json).toMatchObject({ error: { code: -32600 } });
  });

  test("that comes in chunks is refused when it passes the limit, and the server goes on", async () => {
    await using at = await listen({ maxBodyBytes: 1000 });
    using socket = new RawSocket(at.port);
    const chunked = { headers: [...list.headers!, ["transfer-encoding", "chunked"] as const] };
    const chunk = `1f4\r\n${" ".repeat(500)}\r\n`;
    const bytes = Buffer.concat([toBytes(chunked, socket.host), Buffer.from(chunk.repeat(3))]);
    const reply = await socket.send(bytes).head;
    expect(reply.status).toBe(413);
    expect((await exchange(at.port, list)).status).toBe(200);
  });

  test("of exactly the limit is read", async () => {
    const body = String(list.body);
    await using at = await listen({ maxBodyBytes: body.length });
    expect((await exchange(at.port, list)).status).toBe(200);
    expect((await exchange(at.port, { ...list, body: `${body} ` })).status).toBe(413);
  });

  test("that breaks off leaves nothing behind, and the server goes on", async () => {
    await using at = await listen();
    const socket = new RawSocket(at.port);
    const headers = [...list.headers!, ["content-length", "500"] as const];
    socket.send({ headers, body: "{" });
    await new Promise((resolve) => socket.socket.once("connect", resolve));
    socket.cut();
    expect((await exchange(at.port, list)).status).toBe(200);
    expect(at.warnings).toEqual([]);
  });

  test("that is not UTF-8 is not JSON", async () => {
    await using at = await listen();
    const reply = await exchange(at.port, { ...list, body: Buffer.from('{"jsonrpc":"2.0\xff"}', "latin1") });
    expect(reply.status).toBe(400);
    expect(reply.json).toMatchObject({ error: { code: -32700 } });
  });

  test.each([
    ['{"jsonrpc":"2.0","id":5,"method":"ping","Method":"tools/list"}', 5],
    ['{"jsonrpc":"2.0","id":5,"method":"ping","method":"tools/list"}', 5],
    ['{"jsonrpc":"2.0","id":5,"METHOD":"ping"}', 5],
    ['{"jsonrpc":"2.0","id":5,"method":"ping","param\u017f":{}}', 5],
  ])("with keys that two readers read differently is refused: %s", async (body, id) => {
    await using at = await listen();
    const reply = await exchange(at.port, postOf(body));
    expect(reply.status).toBe(400);
    expect(reply.json).toMatchObject({ id, error: { code: -32600 } });
  });

  test.each([
    "text/plain",
    "text/json",
    "application/jsonx",
    "x/application/json",
    "multipart/form-data",
    "",
  ])("of the type %j is refused on every route that takes one", async (type) => {
    await using at = await listen();
    for (const path of ["/mcp", "/messages?sessionId=x"]) {
      const reply = await exchange(at.port, { path, headers: [["content-type", type]], body: "{}" });
      expect(reply.status).toBe(415);
    }
  });

  test.each(["application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"])(
    "of the type %j is read",
    async (type) => {
      await using at = await listen();
      expect(
        (await exchange(at.port, modernPost(modern("tools/list"), { "content-type": type }))).status,
      ).toBe(200);
    },
  );
});

describe("a method that a route does not take", () => {
  test("is answered with those it takes, on every route of the router", async () => {
    await using at = await listen();
    const { routes } = new HttpHandler(at.server);
    for (const [path, taken] of Object.entries(routes)) {
      for (const method of ["GET", "POST", "DELETE", "PUT", "PATCH", "OPTIONS", "TRACE", "HEAD"]) {
        if (taken.includes(method)) continue;
        const reply = await exchange(at.port, { method, path });
        expect([method, path, reply.status]).toEqual([method, path, 405]);
        expect(reply.headers["allow"]).toBe(taken.join(", "));
      }
    }
  });
});

describe("what a client accepts", () => {
  test.each(["text/html", "application/xml, text/plain", "application/json;q=0", "application/jsonx"])(
    "%j is neither of the two: 406",
    async (accept) => {
      await using at = await listen();
      expect((await exchange(at.port, modernPost(modern("tools/list"), { accept }))).status).toBe(406);
    },
  );

  test.each([undefined, "*/*", "application/*", both, `${sse};q=0.5, ${json};q=1`, "text/html, */*;q=0.1"])(
    "%j takes JSON",
    async (accept) => {
      await using at = await listen();
      const reply = await exchange(at.port, modernPost(modern("tools/list"), { accept }));
      expect([reply.status, reply.headers["content-type"]]).toEqual([200, json]);
    },
  );
});

describe("a client that dawdles", () => {
  test("over its headers is cut with 408", async () => {
    await using at = await listen({ headersTimeoutMs: 100 });
    using socket = new RawSocket(at.port);
    const reply = socket.send(Buffer.from("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"));
    await reply.closed;
    expect(reply.status).toBe(408);
  });

  test("over its body is cut with 408", async () => {
    await using at = await listen({ headersTimeoutMs: 100, requestTimeoutMs: 100 });
    using socket = new RawSocket(at.port);
    const reply = socket.send({ headers: [...list.headers!, ["content-length", "500"] as const], body: "{" });
    await reply.closed;
    expect(reply.status).toBe(408);
    expect((await exchange(at.port, list)).status).toBe(200);
  });

  test("is not one whose answer takes long", async () => {
    await using at = await listen({ headersTimeoutMs: 50, requestTimeoutMs: 50 });
    using socket = new RawSocket(at.port);
    const reply = socket.send(modernPost(modernCall("silent")));
    const slow = new RawSocket(at.port);
    await slow.send(Buffer.from("POST /mcp HTTP/1.1\r\n")).closed; // So much for the limit.
    expect(at.waits.get("silent")).toBe("running");
    at.steps.allow();
    expect((await reply.complete).status).toBe(200);
  });

  test("with too many headers gets an error that says so", async () => {
    await using at = await listen();
    const reply = await exchange(at.port, { ...list, headers: [["x-large", "x".repeat(20_000)]] });
    expect(reply.status).toBe(431);
  });
});

describe("beyond loopback", () => {
  test.each(["0.0.0.0", "::", "192.0.2.1", "example.com", "127.0.0.1.example.com"])(
    "%s is not listened on without authentication",
    async (host) => {
      const { server } = createHttpTools();
      await expect(listenHttp(server, { host, port: 0 })).rejects.toMatchObject({
        code: "listen.not_loopback",
        message: expect.stringContaining(host) as string,
      });
    },
  );

  test("requests are served with authentication, for the allowed hosts and the addresses of this machine", async () => {
    const authenticate = (): string => "anyone";
    await using at = await listen({ host: "0.0.0.0", authenticate, allowedHosts: ["mcp.example.com"] });
    expect((await exchange(at.port, { ...list, host: "mcp.example.com" })).status).toBe(200);
    expect((await exchange(at.port, list)).status).toBe(200);
    expect((await exchange(at.port, { ...list, host: "other.example.com" })).status).toBe(403);
  });

  test("by default only loopback is listened on", async () => {
    await using at = await listen();
    expect(at.listener.host).toBe("127.0.0.1");
    expect(at.listener.url).toBe(`http://127.0.0.1:${at.port}/mcp`);
  });
});

describe("authentication", () => {
  const keys: { readonly [header: string]: string } = { "Bearer a": "alice", "Bearer b": "bob" };
  const authenticate = async (header: (name: string) => string | undefined): Promise<string | undefined> =>
    keys[header("authorization") ?? ""];
  const as = (key: string): { readonly authorization: string } => ({ authorization: `Bearer ${key}` });

  test("refuses every route but those for health, and names no id", async () => {
    await using at = await listen({ authenticate });
    const { routes } = new HttpHandler(at.server);
    for (const [path, methods] of Object.entries(routes)) {
      for (const method of methods) {
        const reply = await exchange(at.port, { method, path, headers: toPairs(as("wrong")) });
        const isOpen = ["/health", "/live", "/ready"].includes(path);
        expect([path, reply.status]).toEqual([path, isOpen ? 200 : 401]);
        if (!isOpen) expect(reply.headers["www-authenticate"]).toBe("Bearer");
      }
    }
  });

  test("lets a caller in, in both eras", async () => {
    await using at = await listen({ authenticate });
    expect((await exchange(at.port, modernPost(modern("tools/list"), as("a")))).status).toBe(200);
    using wire = await connectLegacy(at.port, "2025-11-25", {}, as("a"));
    expect((await wire.ask(legacyCall(1, "echo", { message: "hi" }))).result).toMatchObject({
      content: [{ text: "hi" }],
    });
  });

  test("another caller's session is not there: POST, GET and DELETE answer as for an id that never was", async () => {
    await using at = await listen({ authenticate });
    using alice = await connectLegacy(at.port, "2025-11-25", {}, as("a"));
    const ping = { jsonrpc: "2.0", id: 1, method: "ping" };
    const attempts = [as("b"), { ...as("b"), "mcp-session-id": "never-was" }].map(async (headers) => {
      const all = { "mcp-session-id": alice.sessionId!, accept: sse, ...headers };
      const get = { method: "GET", headers: toPairs(all) };
      const answered = [postOf(ping, all), get, { ...get, method: "DELETE" }].map(async (request) => {
        const { status, body } = await exchange(at.port, request);
        return [status, body];
      });
      return Promise.all(answered);
    });
    const [foreign, unknown] = await Promise.all(attempts);
    expect(foreign).toEqual(unknown);
    expect(foreign!.map(([status]) => status)).toEqual([404, 404, 404]);
    expect((await alice.ask(ping)).result).toEqual({});
  });

  describe("of a client that leaves meanwhile", () => {
    const held = (): { check: () => Promise<string>; go: () => void; isAsked: () => boolean } => {
      let go = (): void => {};
      let isAsked = false;
      const gate = new Promise<void>((resolve) => (go = resolve));
      const check = async (): Promise<string> => {
        isAsked = true;
        await gate;
        return "alice";
      };
      return { check, go: () => go(), isAsked: () => isAsked };
    };

    test.each([
      ["before its body came", [...list.headers!, ["content-length", "500"] as const], "{"],
      [
        "after its body came",
        modernPost(modernCall("silent")).headers!,
        modernPost(modernCall("silent")).body!,
      ],
    ])("%s ends its request, and runs nothing for nobody", async (_, headers, body) => {
      const { check, go, isAsked } = held();
      await using at = await listen({ authenticate: check, graceMs: 60_000 });
      using socket = new RawSocket(at.port);
      const reply = socket.send({ headers, body });
      await expect.poll(isAsked).toBe(true);
      socket.cut();
      await reply.closed;
      // A request after it, answered: by then the server has seen the other socket close.
      await exchange(at.port, { method: "GET", path: "/health" });
      go();
      await expect.poll(() => at.waits.get("silent") !== "running").toBe(true);
      await at.listener[Symbol.asyncDispose](); // Would wait for a minute if the request were still there.
    });
  });

  test("a check that throws is an internal error, and discloses nothing", async () => {
    const failing = (): never => {
      throw new Error("a secret detail");
    };
    await using at = await listen({ authenticate: failing });
    const reply = await exchange(at.port, list);
    expect(reply.status).toBe(500);
    expect(reply.body).not.toContain("secret");
    expect(at.warnings).toEqual(["Serving POST /mcp failed"]);
  });
});

describe("other origins", () => {
  const page = "https://app.example.com";
  const preflight = {
    method: "OPTIONS",
    headers: [
      ["origin", page],
      ["access-control-request-method", "POST"],
      ["access-control-request-headers", "content-type, mcp-method, mcp-param-region"],
    ] as const,
  };

  test("may not read anything unless they were listed", async () => {
    await using at = await listen();
    const reply = await exchange(at.port, preflight);
    expect(reply.status).toBe(403);
    const plain = await exchange(at.port, list);
    const headers = [...Object.keys(reply.headers), ...Object.keys(plain.headers)];
    expect(headers.filter((name) => name.startsWith("access-control"))).toEqual([]);
  });

  test("that were listed may send what they ask to send, and read the session id", async () => {
    await using at = await listen({ corsOrigins: [page] });
    const asked = await exchange(at.port, preflight);
    expect(asked.status).toBe(204);
    expect(asked.headers).toMatchObject({
      "access-control-allow-origin": page,
      "access-control-allow-methods": "GET, POST, DELETE",
      "access-control-allow-headers": "content-type, mcp-method, mcp-param-region",
      vary: "origin",
    });
    const reply = await exchange(at.port, postOf(initializeOf("2025-11-25"), { origin: page }));
    expect(reply.status).toBe(200);
    expect(reply.headers["access-control-allow-origin"]).toBe(page);
    expect(reply.headers["access-control-expose-headers"]).toContain("mcp-session-id");
    const stream = await exchange(
      at.port,
      modernPost(modernCall("burst", { count: 1 }), { origin: page, accept: sse }),
    );
    expect(stream.headers["access-control-allow-origin"]).toBe(page);
  });

  test("that were not listed stay out when others were", async () => {
    await using at = await listen({ corsOrigins: [page] });
    const reply = await exchange(at.port, postOf(initializeOf("2025-11-25"), { origin: `${page}.evil` }));
    expect(reply.status).toBe(403);
    expect(reply.headers["access-control-allow-origin"]).toBeUndefined();
  });
});
