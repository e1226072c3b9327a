import { expect, test } from "vitest";
import type { Batch } from "../rpc/channel.ts";
import { parseMessage } from "../rpc/parse.ts";
import { isLegalBatch } from "./era.ts";
import { type LegacyRevision, legacyRevisions } from "./revision.ts";
import { createSession, type Session } from "./session.ts";

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

function batch(...items: readonly string[]): Batch {
  return parseMessage(Buffer.from(`[${items.join(",")}]`)) as Batch;
}

function session(revision: LegacyRevision): Session {
  return createSession({ revision, capabilities: {}, clientInfo: { name: "n", version: "1" } });
}

test.each(legacyRevisions)("in %s a batch is legal only if that is 2025-03-26", (revision) => {
  expect(isLegalBatch(batch(ping), session(revision))).toBe(revision === "2025-03-26");
});

test("there is no batch before the handshake", () => {
  expect(isLegalBatch(batch(ping), undefined)).toBe(false);
});

test.each([
  '{"jsonrpc":"2.0","id":2,"method":"initialize"}',
  '{"jsonrpc":"2.0","id":2,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}',
  '{"jsonrpc":"2.0","method":"n","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}}',
])("a batch must not hold %s", (item) => {
  expect(isLegalBatch(batch(ping, item), session("2025-03-26"))).toBe(false);
});

test("a batch may hold what is not a message, and responses", () => {
  expect(isLegalBatch(batch("7", '{"jsonrpc":"2.0","id":1,"result":1}'), session("2025-03-26"))).toBe(true);
});
