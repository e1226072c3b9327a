// Questions of calls that are over.

import { expect, test } from "vitest";
import { startHttpFront } from "./support/front.ts";
import { fixture } from "./support/upstream.ts";

test("a question that comes after its call was given up is not asked of the next caller", async () => {
  const entry = { command: process.execPath, args: [fixture("bridge-stubborn.mjs")] };
  await using front = await startHttpFront(
    {
      mcpServers: { up: entry },
      junctor: {
        keys: { alice: { env: "ALICE" }, bob: { env: "BOB" } },
        servers: { up: { sharing: "exclusive", maxConnections: 1 } },
      },
    },
    { env: { ...process.env, ALICE: "the-key-of-alice-herself", BOB: "the-key-of-bob-and-no-other" } },
  );
  const heard: string[] = [];
  const handlers = (who: string): object => ({
    elicit: (params: { readonly message?: unknown }) => {
      heard.push(`${who} heard: ${String(params.message)}`);
      return { action: "cancel" };
    },
  });
  await using alice = await front.connect("legacy", {
    key: "the-key-of-alice-herself",
    handlers: handlers("alice"),
  });
  await using bob = await front.connect("modern", {
    key: "the-key-of-bob-and-no-other",
    handlers: handlers("bob"),
  });
  const leaving = new AbortController();
  // Its first progress says that the server works on it.
  const options = { signal: leaving.signal, onEvent: () => leaving.abort() };
  await alice.callTool("up__work", { secret: "what alice wants", isSlow: true }, options).catch(() => {});
  // There is one line only, so bob gets the same.
  await bob.callTool("up__work", { secret: "what bob wants" });
  expect(heard).toEqual([]);
});
