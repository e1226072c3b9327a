// 500 interactive calls at once, of 50 callers of both eras, over one gateway and two legacy servers. Answers are delayed
// at random. It prints its seed; the same calls with the same delays come again with
//
//   JUNCTOR_BRIDGE_SEED=12345 npx vitest run test/bridge/seeded.slow.test.ts

import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { patientClock } from "../support/patient-clock.ts";
import { createRandom } from "../support/random.ts";
import { startHttpFront } from "./support/front.ts";
import { startUpstream } from "./support/upstream.ts";

const callers = 50;
const callsEach = 10;
const seed = Number(process.env["JUNCTOR_BRIDGE_SEED"] ?? randomInt(2 ** 31));

/** Lets a number of turns of the event loop pass. */
async function pass(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}

test(
  `every question reaches its own caller, every tool runs once, every call ends once (seed ${seed})`,
  { timeout: 600_000 },
  async () => {
    console.log(`JUNCTOR_BRIDGE_SEED=${seed}`);
    const random = createRandom(seed);
    await using pipe = await startUpstream("legacy", "stdio");
    await using http = await startUpstream("legacy", "http");
    const keyOf = (index: number): string => `key-of-caller-number-${index}`;
    const names = Array.from({ length: callers }, (_, index) => index);
    await using front = await startHttpFront(
      {
        mcpServers: { pipe: pipe.entry, http: http.entry },
        junctor: {
          keys: Object.fromEntries(names.map((index) => [`caller-${index}`, { env: `KEY_${index}` }])),
          servers: { pipe: { sharing: "exclusive", maxConnections: 12 } },
        },
      },
      {
        clock: patientClock,
        env: { ...process.env, ...Object.fromEntries(names.map((index) => [`KEY_${index}`, keyOf(index)])) },
      },
    );

    /** What each caller was asked; the questions name the call they belong to. */
    const heard: { readonly caller: number; readonly message: string }[] = [];
    const clients: Client[] = [];
    for (const caller of names) {
      const elicit = async (params: {
        readonly [key: string]: unknown;
      }): Promise<{ action: "accept"; content: { nonce: string } }> => {
        const message = String(params["message"]);
        heard.push({ caller, message });
        await pass(Math.floor(random() * 300));
        return { action: "accept", content: { nonce: message } };
      };
      clients.push(
        await front.connect(caller % 2 === 0 ? "modern" : "legacy", {
          key: keyOf(caller),
          handlers: { elicit },
        }),
      );
    }

    const plans = names.flatMap((caller) =>
      Array.from({ length: callsEach }, (_, call) => ({
        caller,
        server: random() < 0.5 ? ("pipe" as const) : ("http" as const),
        nonce: `c${caller}x${call}`,
        rounds: Array.from({ length: 1 + Math.floor(random() * 3) }, () =>
          Array.from({ length: 1 + Math.floor(random() * 2) }, () => "form"),
        ),
      })),
    );
    const ended: string[] = [];
    const outcomes = await Promise.all(
      plans.map(async ({ caller, server, nonce, rounds }) => {
        await pass(Math.floor(random() * 100));
        const result = await clients[caller]
          ?.callTool(`${server}__ask`, { nonce, rounds }, { timeoutMs: 600_000 })
          .catch((error: unknown) => ({
            content: [{ type: "text" as const, text: JSON.stringify(String(error)) }],
          }));
        ended.push(nonce);
        const [block] = result?.content ?? [];
        return JSON.parse(block?.type === "text" ? block.text : "null") as unknown;
      }),
    );

    const strays = heard.filter(({ caller, message }) => !message.split(" ")[2]?.startsWith(`c${caller}x`));
    expect(strays).toEqual([]);
    const expected = plans.map(({ nonce, rounds }) =>
      rounds.map((kinds, round) =>
        kinds.map(() => ({ action: "accept", content: { nonce: `form ${round} ${nonce}` } })),
      ),
    );
    expect(outcomes).toEqual(expected);
    expect(heard).toHaveLength(plans.flatMap(({ rounds }) => rounds.flat()).length);
    expect(ended.toSorted()).toEqual(plans.map(({ nonce }) => nonce).toSorted());
    const events = [...pipe.events(), ...http.events()];
    const about = (word: string): readonly string[] =>
      events.flatMap((line) => (line.startsWith(`${word} `) ? [line.slice(word.length + 1)] : [])).toSorted();
    const nonces = plans.map(({ nonce }) => nonce).toSorted();
    expect(about("run")).toEqual(nonces);
    expect(about("done")).toEqual(nonces);
    expect(about("cancelled")).toEqual([]);
    await Promise.all(clients.map((client) => client.close()));
  },
);
