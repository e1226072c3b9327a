import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type OutgoingHttpHeaders, request } from "node:http";
import { connect as connectSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { expect, test } from "vitest";
import type { Replica } from "../../packages/junctor/src/cluster/membership.ts";
import {
  listenTrunk,
  toCallerHeader,
  toTrunkKeys,
  type Trunk,
} from "../../packages/junctor/src/cluster/trunk.ts";
import type { PipedFrom } from "../../packages/server/src/http/session-table.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";

const listen = { kind: "tls", host: "127.0.0.1", port: 0 } as const;
const secrets = { own: "s".repeat(40), other: "t".repeat(40) };

function openTrunk(...given: readonly string[]): Promise<Trunk> {
  return listenTrunk({ listen, keys: toTrunkKeys(given), onWarning: () => {} });
}

/** Trunks on Unix sockets, as workers have them. */
function makeFolder(): Disposable & { open(name: string): Promise<Trunk> } {
  const folder = mkdtempSync(join(tmpdir(), "junctor-"));
  return {
    open: (name) =>
      listenTrunk({ listen: { kind: "socket", path: join(folder, name) }, keys: [], onWarning: () => {} }),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function toReplica({ address }: Trunk): Replica {
  return { id: "0123456789ab", address, version: "1", isDraining: false };
}

async function ask(from: Trunk, to: Trunk, headers: OutgoingHttpHeaders = {}): Promise<number> {
  const asked = await from.request(toReplica(to), { path: "/", headers });
  return new Promise((resolve, reject) => {
    asked.once("response", (answer) => {
      answer.resume().once("end", () => resolve(answer.statusCode ?? 0));
    });
    asked.once("error", reject);
    asked.end();
  });
}

test("a replica with the same secret is let in, with another it is not", async () => {
  await using one = await openTrunk(secrets.own);
  await using two = await openTrunk(secrets.own);
  await using foreign = await openTrunk(secrets.other);
  await expect(ask(two, one)).resolves.toBe(503);
  await expect(ask(foreign, one)).rejects.toThrow(/SSL|EPROTO/);
  await expect(ask(one, foreign)).rejects.toThrow(/SSL|EPROTO/);
});

test("while secrets are rotated, a new replica and an old one reach each other", async () => {
  await using old = await openTrunk(secrets.own);
  await using renewed = await openTrunk(secrets.other, secrets.own);
  await expect(ask(renewed, old)).resolves.toBe(503);
  await expect(ask(old, renewed)).resolves.toBe(503);
});

test("a connection that is meant for the replica that had the address before is refused", async () => {
  const keys = toTrunkKeys([secrets.own]);
  await using from = await openTrunk(secrets.own);
  await using to = await listenTrunk({ listen, keys, id: "ba9876543210", onWarning: () => {} });
  to.serve({ serverNamed: () => createServer(createRegistry(), { name: "it", version: "1" }) });
  const openConnection = (id: string): Promise<Duplex> =>
    from.openConnection({ ...toReplica(to), id }, "it", new AbortController().signal);
  await expect(openConnection("0123456789ab")).rejects.toThrow("404");
  (await openConnection("ba9876543210")).destroy();
});

test("a request of a caller with many groups is passed on", async () => {
  await using one = await openTrunk(secrets.own);
  await using two = await openTrunk(secrets.own);
  const groups = Array.from({ length: 1000 }, (_, index) => `group-${index}`.padEnd(256, "x"));
  const from = { identity: { name: "ada", groups }, address: "127.0.0.1" };
  let passed: PipedFrom | undefined;
  one.serve({
    pipe: (_incoming, response, given) => {
      passed = given;
      response.writeHead(200).end();
    },
  });
  await expect(ask(two, one, toCallerHeader(from))).resolves.toBe(200);
  expect(passed?.identity?.groups).toEqual(groups);
});

test("a replica that is killed at the moment of a request fails this request alone", async () => {
  using sockets = makeFolder();
  await using from = await sockets.open("from");
  await using to = await sockets.open("to");
  await expect(ask(from, to)).resolves.toBe(503);
  // Its end of the kept connection is closed now, and this side has not read that yet.
  const killed = to[Symbol.asyncDispose]();
  await expect(ask(from, to)).rejects.toThrow("EPIPE");
  await killed;
});

test("a replica that leaves while its connection is refused harms nothing", async () => {
  using sockets = makeFolder();
  await using from = await sockets.open("from");
  await using to = await sockets.open("to");
  const { path } = to.address as { path: string };
  const leaving = connectSocket(path);
  const head = [
    "GET /line/unknown HTTP/1.1",
    "Host: trunk",
    "Connection: Upgrade",
    "Upgrade: junctor-line/1",
  ];
  // An error that nobody hears would end the process, and fails this run of tests.
  leaving.end(`${head.join("\r\n")}\r\n\r\n`, () => leaving.destroy());
  await once(leaving, "close");
  await expect(ask(from, to)).resolves.toBe(503);
});

test("programs without the secret reach nothing", async () => {
  await using trunk = await openTrunk(secrets.own);
  const { port } = trunk.address as { port: number };
  const plain = new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port, path: "/" }, resolve).on("error", reject).end();
  });
  await expect(plain).rejects.toThrow(/hang up|reset/i);
  const withoutKey = new Promise((resolve, reject) => {
    connectTls({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => resolve("let in")).on(
      "error",
      reject,
    );
  });
  await expect(withoutKey).rejects.toThrow(/handshake|reset/i);
});
