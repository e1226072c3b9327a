// One legacy server on standard streams that counts its calls and asks from the first call on, and three callers of two
// eras that can each be asked something else. A run that failed is made again by its seed:
//
//   JUNCTOR_SEED=17 npx vitest run test/bridge/one-process.test.ts

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import type { QuestionHandlers } from "../../packages/client/src/client/handlers.ts";
import { runs } from "../support/runs.ts";
import { type HttpFront, startHttpFront } from "./support/front.ts";
import { fixture } from "./support/upstream.ts";

interface Told {
  readonly count: number;
  readonly pid: number;
  readonly answer: { readonly [key: string]: unknown };
}

interface Caller {
  readonly name: string;
  readonly client: Client;
  /** Makes one call, in which the caller is asked something. */
  visit(): Promise<Told>;
  /** The questions it was asked that name a caller. */
  readonly heard: string[];
}

/** Numbers that look like chance and are the same for the same seed. */
function createChance(seed: number): () => number {
  let state = (seed * 2_654_435_761) >>> 0;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return state / 2 ** 32;
  };
}

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
};

async function connectAll(front: HttpFront, chance: () => number): Promise<readonly Caller[]> {
  const pause = (): Promise<void> => turns(Math.floor(chance() * 6));
  const connectOne = async (
    name: string,
    era: "legacy" | "modern",
    kind: string,
    toHandlers: (heard: string[]) => QuestionHandlers,
  ): Promise<Caller> => {
    const heard: string[] = [];
    const client = await front.connect(era, { handlers: toHandlers(heard) });
    const visit = async (): Promise<Told> => {
      const { content } = await client.callTool("up__visit", { kind, who: name });
      return JSON.parse((content[0] as { readonly text: string }).text) as Told;
    };
    return { name, client, visit, heard };
  };
  return [
    await connectOne("ada", "legacy", "form", (heard) => ({
      elicit: async (params) => {
        heard.push(String(params["message"]));
        await pause();
        return { action: "accept", content: { name: "ada" } };
      },
    })),
    await connectOne("bob", "modern", "sample", (heard) => ({
      sample: async (params) => {
        heard.push(JSON.stringify(params["messages"]));
        await pause();
        return { role: "assistant", model: "m", content: { type: "text", text: "bob" } };
      },
    })),
    await connectOne("eve", "legacy", "roots", () => ({
      roots: async () => {
        await pause();
        return [{ uri: "file:///eve" }];
      },
    })),
  ];
}

describe.each([
  ["by default", {}, 1],
  ["with a process for each session", { sharing: "perSession" }, 3],
] as const)("%s", (_, settings, processes) => {
  let front: HttpFront;
  const random = { chance: createChance(0) };
  let callers: readonly Caller[];

  beforeAll(async () => {
    front = await startHttpFront({
      mcpServers: { up: { command: process.execPath, args: [fixture("bridge-counting.mjs")] } },
      junctor: { servers: { up: settings } },
    });
    callers = await connectAll(front, () => random.chance());
  });
  afterAll(async () => {
    await Promise.all(callers?.map(({ client }) => client.close()) ?? []);
    await front?.[Symbol.asyncDispose]();
  });

  test("each is asked its own questions, none is refused, and the count is one for each process", async () => {
    const only = Number(process.env["JUNCTOR_SEED"] ?? Number.NaN);
    const seeds = Number.isNaN(only) ? Array.from({ length: runs(1000) }, (__, seed) => seed) : [only];
    const counts = new Map<number, number[]>();
    const pidsOf = new Map(callers.map(({ name }) => [name, new Set<number>()]));
    for (const seed of seeds) {
      random.chance = createChance(seed);
      const { chance } = random;
      const visits = callers.flatMap((caller) =>
        Array.from({ length: 1 + Math.floor(chance() * 2) }, async () => {
          await turns(Math.floor(chance() * 4));
          return { caller, told: await caller.visit() };
        }),
      );
      for (const { caller, told } of await Promise.all(visits)) {
        expect(told.answer, `seed ${seed}, ${caller.name}`).not.toHaveProperty("refused");
        expect(JSON.stringify(told.answer), `seed ${seed}`).toContain(caller.name);
        counts.set(told.pid, [...(counts.get(told.pid) ?? []), told.count]);
        pidsOf.get(caller.name)?.add(told.pid);
      }
    }
    expect(counts.size).toBe(processes);
    // Every process counted each of its calls once.
    for (const seen of counts.values())
      expect(seen.toSorted((one, other) => one - other)).toEqual(seen.map((__, index) => index + 1));
    for (const pids of pidsOf.values()) expect(pids.size).toBe(1);
    for (const { name, heard } of callers)
      for (const question of heard) expect(question).toContain(`for ${name}`);
  });

  test("the status has every process, with its reason", () => {
    const [status] = front.gateway.status();
    const reasons = status?.connections?.map(({ reason }) => reason) ?? ["for all callers"];
    expect(reasons).toHaveLength(processes === 1 ? 1 : processes + 1);
    expect(reasons[0]).toBe("for all callers");
  });
});
