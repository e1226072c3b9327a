import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { elicit } from "../../packages/core/src/mcp/question.ts";
import { createSeal } from "../../packages/core/src/mcp/seal.ts";
import { inputRequired } from "../../packages/core/src/provider/content.ts";
import { startCli } from "../support/cli-child.ts";
import { listen, type Listening, strings } from "../support/http-tools.ts";
import { connectLegacy, HttpWire, legacyCall } from "../support/http-wire.ts";
import { exchange } from "../support/raw-http.ts";

const secret = "a secret of more than thirty-two characters";

/** The same client, as it goes on with another process under the id it has. */
function goOn(before: HttpWire, port: number): HttpWire {
  const after = new HttpWire(port, before.revision);
  after.sessionId = before.sessionId;
  Object.assign(after.headers, before.headers);
  return after;
}

test.each(["2025-03-26", "2025-06-18", "2025-11-25"] as const)(
  "a session of %s goes on with another process that shares the secret",
  async (revision) => {
    const first = await listen({ seal: createSeal({ secret }) });
    using before = await connectLegacy(first.port, revision, { roots: {} });
    await before.ask(legacyCall(1, "echo", { message: "hi" }));
    await first[Symbol.asyncDispose]();

    await using second = await listen({ seal: createSeal({ secret }) });
    using after = goOn(before, second.port);
    const { reply } = after.open(legacyCall(2, "where"));
    const asked = await reply.message(1); // What initialize settled is known: the client can be asked.
    await after.post({ jsonrpc: "2.0", id: asked.id!, result: { roots: [{ uri: "file:///a" }] } });
    await reply.complete;
    expect(reply.messages.at(-1)!.result).toMatchObject({ content: [{ text: "file:///a" }] });

    const announced = await after.get().reply.head;
    second.registry.register("sprout", {}, () => "grown");
    expect((await announced.message(1)).method).toBe("notifications/tools/list_changed");
  },
);

test("an answer to a question of before a restart is not taken for one of after it", async () => {
  const begin = async (): Promise<Listening> => {
    const listening = await listen({ seal: createSeal({ secret }) });
    listening.registry.register("confirm", { input: strings("message") }, ({ message }, { answers }) => {
      const answer = answers.elicited("sure");
      if (answer === undefined) return inputRequired({ sure: elicit(String(message), {}, []) });
      return `${String(message)} ${answer.action}`;
    });
    return listening;
  };
  const first = await begin();
  using before = await connectLegacy(first.port, "2025-11-25", { elicitation: {} });
  const asked = await before
    .open(legacyCall(1, "confirm", { message: "Delete everything?" }))
    .reply.message(1);
  expect(asked.params).toMatchObject({ message: "Delete everything?" });
  await first[Symbol.asyncDispose]();

  await using second = await begin();
  using after = goOn(before, second.port);
  const { reply } = after.open(legacyCall(2, "confirm", { message: "Pay 100 EUR?" }));
  const askedLater = await reply.message(1);
  await after.post({ jsonrpc: "2.0", id: asked.id!, result: { action: "accept", content: {} } });
  await after.post({ jsonrpc: "2.0", id: askedLater.id!, result: { action: "decline" } });
  await reply.complete;
  expect(reply.messages.at(-1)!.result).toMatchObject({ content: [{ text: "Pay 100 EUR? decline" }] });
});

test("a session of another secret is not there", async () => {
  await using first = await listen();
  await using second = await listen();
  using before = await connectLegacy(first.port);
  using after = goOn(before, second.port);
  expect((await after.post({ jsonrpc: "2.0", id: 1, method: "ping" })).status).toBe(404);
});

test("a session is bound to its caller in the other process too", async () => {
  const authenticate = (header: (name: string) => string | undefined): string | undefined =>
    header("x-caller");
  const options = { seal: createSeal({ secret }), authenticate };
  await using first = await listen(options);
  await using second = await listen(options);
  using alice = await connectLegacy(first.port, "2025-11-25", {}, { "x-caller": "alice" });
  using asAlice = goOn(alice, second.port);
  using asBob = goOn(alice, second.port);
  asBob.headers["x-caller"] = "bob";
  const ping = { jsonrpc: "2.0", id: 1, method: "ping" };
  expect((await asBob.post(ping)).status).toBe(404);
  expect((await asAlice.post(ping)).status).toBe(200);
  expect((await asBob.post(ping)).status).toBe(404);
});

test("what a broken stream did not deliver is lost with the process, and the client gets an error", async () => {
  const first = await listen({ seal: createSeal({ secret }) });
  using before = await connectLegacy(first.port);
  const call = legacyCall(1, "burst", { count: 2 }, { progressToken: 1 });
  const reply = await (await before.post(call)).complete;
  await first[Symbol.asyncDispose]();
  await using second = await listen({ seal: createSeal({ secret }) });
  using after = goOn(before, second.port);
  expect((await after.get(reply.events[0]!.id).reply.complete).status).toBe(400);
});

test("the command itself, killed and started again: the second call of the session works", async () => {
  const env = { JUNCTOR_SECRET: secret };
  const first = await startCli(env);
  using before = await connectLegacy(first.port);
  expect((await before.ask(legacyCall(1, "add", { a: 1, b: 2 }))).result).toMatchObject({
    content: [{ text: "3" }],
  });
  first.child.kill("SIGKILL");
  await first.exited;

  await using second = await startCli(env);
  using after = goOn(before, second.port);
  expect((await after.ask(legacyCall(2, "add", { a: 3, b: 4 }))).result).toMatchObject({
    content: [{ text: "7" }],
  });

  const another = `another ${secret}`;
  await using rotated = await startCli({ JUNCTOR_SECRET: `${another},${secret}` });
  using kept = goOn(before, rotated.port);
  expect((await kept.ask(legacyCall(3, "add", { a: 1, b: 1 }))).result).toMatchObject({
    content: [{ text: "2" }],
  });

  await using stranger = await startCli({ JUNCTOR_SECRET: another });
  using lost = goOn(before, stranger.port);
  expect((await lost.post(legacyCall(3, "add", { a: 1, b: 1 }))).status).toBe(404);
  expect((await exchange(stranger.port, { method: "GET", path: "/health" })).json).toEqual({ status: "ok" });
});

test("with no secret given, a session goes on after a restart, and with a process that started at the same time", async () => {
  const state = mkdtempSync(join(tmpdir(), "junctor-restart-"));
  const env = { XDG_STATE_HOME: state, JUNCTOR_SECRET: "" };
  const [first, second] = await Promise.all([startCli(env), startCli(env)]);
  using before = await connectLegacy(first.port);
  first.child.kill("SIGKILL");
  await first.exited;
  await using third = await startCli(env);
  for (const { port } of [second, third]) {
    using after = goOn(before, port);
    expect((await after.ask(legacyCall(2, "add", { a: 3, b: 4 }))).result).toMatchObject({
      content: [{ text: "7" }],
    });
  }
  await second[Symbol.asyncDispose]();
  rmSync(state, { recursive: true });
});
