// Servers over HTTP that say too much: they are not read from for a while, so their sockets fill up and they wait.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { HttpLink } from "../../packages/client/src/http/http-link.ts";
import { connectHttpSse } from "../../packages/client/src/http/http-sse-channel.ts";
import { LazyAbort } from "../../packages/core/src/async/deadline.ts";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";

const note =
  'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n\n';
const ping = 'data: {"jsonrpc":"2.0","id":"again","method":"ping"}\n\n';
const answer = 'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n';

/** A server that reacts as a test says, and a link to it whose time stands still. */
async function open(react: (request: IncomingMessage, response: ServerResponse) => void) {
  const sockets = new Set<Socket>();
  const server = createServer(react).on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  const clock = createVirtualClock(1_000_000);
  let heard = 0;
  let asked = 0;
  const events = {
    notified: () => void heard++,
    asked: () => {
      asked++;
      return Promise.resolve(RawJson.fromText("{}"));
    },
  };
  const link = new HttpLink(url, { events, clock });
  link.use({ kind: "legacy", revision: "2025-11-25" });
  onTestFinished(async () => {
    const closed = link[Symbol.asyncDispose]();
    await clock.advance(5000);
    await closed;
    server.closeAllConnections();
    server.close();
  });
  const call = (): Promise<RawJson> =>
    link.request({ method: "ping", params: undefined, stop: new LazyAbort() });
  return { url, clock, link, sockets, call, heard: () => heard, asked: () => asked };
}

function stream(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { "content-type": "text/event-stream" });
}

/** Says the same until the other side takes no more, and again whenever it does. Gives how many bytes were said. */
function flood(response: ServerResponse, saying: string): () => number {
  const piece = saying.repeat(Math.ceil(65_536 / saying.length));
  let said = 0;
  const more = (): void => {
    while (!response.destroyed) {
      said += piece.length;
      if (!response.write(piece)) return;
    }
  };
  response.on("drain", more);
  more();
  return () => said;
}

/** Resolves with a count that no longer grows. */
async function settled(count: () => number): Promise<number> {
  for (let last = -1, same = 0; same < 20; await new Promise((resolve) => setTimeout(resolve, 10))) {
    same = count() === last && last > 0 ? same + 1 : 0;
    last = count();
  }
  return count();
}

describe("a server over HTTP that floods", () => {
  test("its stream of announcements has to wait, and is read at a limited pace", async () => {
    let said = (): number => 0;
    const { link, clock, heard, call } = await open((request, response) => {
      if (request.method === "GET") said = flood(stream(response), note);
      else stream(response).end(answer);
    });
    void link.listen?.(() => {});
    expect(await settled(heard)).toBeLessThan(2100);
    expect(await settled(() => said())).toBeLessThan(32 * 1024 * 1024);
    await call();
    const heardBefore = heard();
    for (let step = 0; step < 200; step++) await clock.advance(5);
    // At most what a second pays for, and one piece.
    expect(heard() - heardBefore).toBeGreaterThan(500);
    expect(heard() - heardBefore).toBeLessThan(2100);
  });

  test("the stream of a call is read to its end, answer included", async () => {
    const { clock, heard, call } = await open((_, response) => {
      stream(response).end(note.repeat(4000) + answer);
    });
    const answered = call();
    const ends: RawJson[] = [];
    void answered.then((end) => ends.push(end));
    expect(await settled(heard)).toBeLessThan(2100);
    expect(ends).toEqual([]);
    while (ends.length === 0) await clock.advance(20);
    expect(heard()).toBe(4000);
  });

  test("its stream in small chunks has to wait as well", async () => {
    let said = 0;
    const { link, clock, heard } = await open((_, response) => {
      const more = (): void => {
        while (!response.destroyed) {
          said += note.length;
          if (!response.write(note)) return;
        }
      };
      stream(response).on("drain", more);
      more();
    });
    void link.listen?.(() => {});
    await settled(heard);
    const [saidBefore, heardBefore] = [await settled(() => said), heard()];
    for (let step = 0; step < 200; step++) await clock.advance(5);
    expect(heard() - heardBefore).toBeGreaterThan(500);
    expect((await settled(() => said)) - saidBefore).toBeLessThan(4 * 1024 * 1024);
  });

  test("us with comments has to wait as well", async () => {
    let said = (): number => 0;
    const { link } = await open((_, response) => (said = flood(stream(response), ": still here\n\n")));
    void link.listen?.(() => {});
    expect(await settled(() => said())).toBeLessThan(32 * 1024 * 1024);
  });

  test("us with requests and takes no answer is asked for nothing more", async () => {
    let posts = 0;
    const { link, clock, asked } = await open((request, response) => {
      if (request.method === "GET") flood(stream(response), ping);
      else posts++;
    });
    void link.listen?.(() => {});
    await settled(asked);
    for (let step = 0; step < 500; step++) await clock.advance(20);
    // Ten seconds went by: without the limit it would be 5,500.
    expect(asked()).toBeLessThan(600);
    expect(posts).toBeLessThanOrEqual(16);
  });

  test("us with requests is answered one request a turn, so that other work goes on between them", async () => {
    const { link, asked } = await open((request, response) => {
      if (request.method === "GET") stream(response).write(ping.repeat(30));
      else response.writeHead(202).end();
    });
    let last = 0;
    let most = 0;
    const look = (): void => {
      most = Math.max(most, asked() - last);
      last = asked();
      if (last < 30) setImmediate(look);
    };
    look();
    void link.listen?.(() => {});
    await expect.poll(asked).toBe(30);
    expect(most).toBeLessThanOrEqual(2);
  });

  test("after its answer loses the socket", async () => {
    const { call, sockets } = await open((_, response) => {
      stream(response).write(answer);
      flood(response, note);
    });
    await call();
    await expect.poll(() => sockets.size).toBe(0);
  });

  test("by the transport of 2024-11-05 has to wait", async () => {
    let said = (): number => 0;
    const { url, clock } = await open((_, response) => {
      stream(response).write("event: endpoint\ndata: /messages\n\n");
      said = flood(response, note);
    });
    await using _channel = await connectHttpSse(url, { clock, timeoutMs: 1000 });
    expect(await settled(() => said())).toBeLessThan(32 * 1024 * 1024);
  });
});
