// Who is told that a user is done with a page: whoever was sent there, and nobody else.

import { expect, test } from "vitest";
import type { LegacyRevision } from "../../packages/core/src/mcp/revision.ts";
import { connectLegacy, HttpWire, legacyCall, modernCall, modernMeta } from "../support/http-wire.ts";
import type { RawReply } from "../support/raw-http.ts";
import { type HttpFront, startHttpFront } from "./support/front.ts";
import { fixture, startUpstream } from "./support/upstream.ts";

const canVisit = { elicitation: { url: {} } };
const notice = (elicitationId: string): object => ({
  jsonrpc: "2.0",
  method: "notifications/elicitation/complete",
  params: { elicitationId },
});

const startPages = (sharing = "shared"): Promise<HttpFront> =>
  startHttpFront({
    mcpServers: { up: { command: process.execPath, args: [fixture("bridge-pages.mjs")] } },
    junctor: { servers: { up: { sharing } } },
  });

/** A client and the stream on which it hears what belongs to no call. */
async function join(
  { listener }: HttpFront,
  revision: LegacyRevision = "2025-11-25",
): Promise<{ readonly wire: HttpWire; readonly stream: RawReply } & Disposable> {
  const wire = await connectLegacy(listener.port, revision, canVisit);
  const stream = await wire.get().reply.head;
  return { wire, stream, [Symbol.dispose]: () => wire[Symbol.dispose]() };
}

test("a caller that was asked to visit a page is notified that its user is done there, when its call is over", async () => {
  // The next call of the same caller is on the line it was asked on.
  await using front = await startPages("exclusive");
  using alice = await join(front);
  const called = await alice.wire.post(legacyCall(1, "up__visit", { id: "a" }));
  const question = await called.message(1);
  expect(question.params).toMatchObject({ mode: "url", elicitationId: "a" });
  await alice.wire.post({ jsonrpc: "2.0", id: question.id!, result: { action: "accept" } });
  await called.complete;
  await alice.wire.ask(legacyCall(2, "up__finish", { id: "a" }));
  expect(await alice.stream.message(1)).toEqual(notice("a"));
});

test("callers on one connection are notified of their own pages only, and of each once", async () => {
  await using front = await startPages();
  using alice = await join(front);
  using bob = await join(front);
  const refusal = { code: -32042 };
  expect((await alice.wire.ask(legacyCall(1, "up__need", { id: "a" }))).error).toMatchObject(refusal);
  expect((await bob.wire.ask(legacyCall(1, "up__need", { id: "b" }))).error).toMatchObject(refusal);
  for (const id of ["a", "b", "a", "b", "c"]) await bob.wire.ask(legacyCall(2, "up__finish", { id }));
  expect(await alice.stream.message(1)).toEqual(notice("a"));
  expect(await bob.stream.message(1)).toEqual(notice("b"));
  // What is announced later comes later.
  await alice.wire.ask(legacyCall(3, "up__need", { id: "a2" }));
  await bob.wire.ask(legacyCall(3, "up__need", { id: "b2" }));
  for (const id of ["a2", "b2"]) await alice.wire.ask(legacyCall(4, "up__finish", { id }));
  await alice.stream.message(2);
  await bob.stream.message(2);
  expect(alice.stream.messages).toEqual([notice("a"), notice("a2")]);
  expect(bob.stream.messages).toEqual([notice("b"), notice("b2")]);
});

test("of a page that two callers were sent to under one name neither is notified", async () => {
  await using front = await startPages();
  using alice = await join(front);
  using bob = await join(front);
  for (const { wire } of [alice, bob]) {
    await wire.ask(legacyCall(1, "up__need", { id: "same" }));
    await wire.ask(legacyCall(2, "up__need", { id: wire.sessionId! }));
  }
  for (const id of ["same", alice.wire.sessionId!, bob.wire.sessionId!])
    await alice.wire.ask(legacyCall(3, "up__finish", { id }));
  for (const { wire, stream } of [alice, bob]) {
    await stream.message(1);
    expect(stream.messages).toEqual([notice(wire.sessionId!)]);
  }
});

test("revisions that know no such notice are not sent one", async () => {
  await using front = await startPages();
  using old = await join(front, "2025-06-18");
  using alice = await join(front);
  using modern = new HttpWire(front.listener.port, "2026-07-28");
  const meta = { _meta: modernMeta(canVisit) };
  await old.wire.ask(legacyCall(1, "up__need", { id: "old" }));
  const asked = await modern.ask(modernCall("up__need", { id: "new" }, meta));
  expect(asked.result).toMatchObject({ resultType: "input_required" });
  await alice.wire.ask(legacyCall(1, "up__need", { id: "a" }));
  for (const id of ["old", "new", "a"]) await alice.wire.ask(legacyCall(2, "up__finish", { id }));
  await alice.stream.message(1);
  expect(alice.stream.messages).toEqual([notice("a")]);
  expect(old.stream.messages).toEqual([]);
});

test("a caller is notified on the stream of its call while that is open", async () => {
  await using upstream = await startUpstream("legacy", "http");
  await using front = await startHttpFront({ mcpServers: { up: upstream.entry } });
  using wire = await connectLegacy(front.listener.port, "2025-11-25", canVisit);
  const called = await wire.post(legacyCall(1, "up__ask", { nonce: "n1", rounds: [["page"]] }));
  const question = await called.message(1);
  await wire.post({ jsonrpc: "2.0", id: question.id!, result: { action: "accept" } });
  await called.complete;
  expect(called.messages.slice(1)).toMatchObject([notice("n1"), { id: 1, result: {} }]);
});
