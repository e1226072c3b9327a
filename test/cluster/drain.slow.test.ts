// A replica that leaves while 500 calls wait for their callers: each that is answered in time gets its result.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HttpWire, modernCall, modernMeta } from "../support/http-wire.ts";
import type { Message } from "../support/raw-http.ts";
import { createToldServer, type ToldServer } from "./support/servers.ts";
import { isSkipped } from "./support/skip.ts";
import { type Stage, startStage } from "./support/stage.ts";

const count = 500;
const _meta = modernMeta({ elicitation: { form: {} } });

describe.skipIf(isSkipped)("a replica that drains", () => {
  let stage: Stage;
  let told: ToldServer;
  beforeAll(async () => {
    told = createToldServer("legacy");
    // Over HTTP, questions say which call they belong to, so that many calls can wait at once.
    const up = await told.startHttp();
    stage = await startStage({ mcpServers: { up } });
  });
  afterAll(async () => {
    await stage?.[Symbol.asyncDispose]();
    told?.[Symbol.dispose]();
  });

  test(`keeps ${count} parked calls until they are answered, by way of the others`, async () => {
    const [leaving, ...others] = stage.replicas;
    using wire = new HttpWire(leaving!.port, "2026-07-28");
    const nonces = Array.from({ length: count }, (_, index) => `d${index}`);
    const parked = await inGroups(nonces, (nonce) => wire.ask(modernCall("up__greet", { nonce }, { _meta })));
    expect(parked.filter(({ result }) => result?.["resultType"] !== "input_required")).toEqual([]);

    const ended = leaving!.end("SIGTERM");
    await expect
      .poll(
        async () => (await fetch(`http://127.0.0.1:${leaving!.port}/ready`).catch(() => undefined))?.status,
      )
      .not.toBe(200);
    const back = others.map(({ port }) => new HttpWire(port, "2026-07-28"));
    const results = await inGroups(nonces, (nonce, index) => {
      const { requestState, inputRequests } = parked[index]!.result!;
      const answer = { action: "accept", content: { name: `Ada ${nonce}` } };
      const keys = Object.keys(inputRequests as object);
      const inputResponses = Object.fromEntries(keys.map((key) => [key, answer]));
      const more = { _meta, requestState, inputResponses };
      return back[index % back.length]!.ask(modernCall("up__greet", { nonce }, more));
    });
    const texts = results.map(
      ({ result }) => (result?.["content"] as { text: string }[] | undefined)?.[0]?.text,
    );
    expect(texts).toEqual(nonces.map((nonce) => `Ada ${nonce}`));
    await ended;
    for (const one of back) one[Symbol.dispose]();
  });
});

/** Does something for each, fifty at a time. */
async function inGroups(
  nonces: readonly string[],
  work: (nonce: string, index: number) => Promise<Message>,
): Promise<readonly Message[]> {
  const done: Message[] = [];
  for (let from = 0; from < nonces.length; from += 50) {
    const group = nonces.slice(from, from + 50);
    done.push(...(await Promise.all(group.map((nonce, index) => work(nonce, from + index)))));
  }
  return done;
}
