import { expect, test } from "vitest";
import type { Skill } from "../../../core/src/mcp/skill.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import { Listing } from "../../../core/src/provider/listing.ts";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import { createLateList } from "./upstream.ts";

const skill: Skill = {
  uri: "skill://x/SKILL.md",
  frontmatter: { name: "x", description: "" },
  resources: "dynamic",
};

/** The skills of a server whose lists take as long as `takesMs` says, and how long a caller waits for one. */
function listing() {
  const clock = createVirtualClock();
  const server = { takesMs: 0, asked: 0 };
  const list = async (): Promise<Listing<Skill>> => {
    server.asked++;
    if (server.takesMs > 0) await new Promise<void>((done) => clock.timer(server.takesMs, done));
    return new Listing([skill]);
  };
  const everyone = { client: { list, call: () => Promise.reject(new Error("nothing is called")) } };
  const pool = {
    everyone,
    find: () => everyone,
  };
  const loan = { client: everyone.client, pooled: everyone, release: () => {} };
  const calls = {
    useListed: async (_context: unknown, use: (given: typeof loan) => unknown) => use(loan),
  };
  const options = { part: "skills", clock, pool, calls };
  const listSkillsFor = createLateList(options as unknown as Parameters<typeof createLateList<"skills">>[0]);
  const measure = async (): Promise<readonly [count: number, waitedMs: number]> => {
    const from = clock.now();
    const ended: (readonly [count: number, waitedMs: number])[] = [];
    const note = ({ items: { length } }: { readonly items: readonly Skill[] }): void =>
      void ended.push([length, clock.now() - from]);
    const listed = listSkillsFor(createCallContext()).then(note);
    await clock.advance(0);
    while (ended.length === 0) await clock.advance(100);
    await listed;
    return ended[0] ?? [0, 0];
  };
  return { clock, server, list: measure };
}

test.each([4900, 3_600_000])(
  "a server that takes %s ms for its skills holds up one list in half a minute",
  async (takesMs) => {
    const { clock, server, list } = listing();
    expect(await list()).toEqual([1, 0]);
    server.takesMs = takesMs;
    expect(await list()).toEqual([1, 1000]);
    for (let time = 0; time < 100; time++) expect(await list()).toEqual([1, 0]);
    expect(server.asked).toBe(2);
    await clock.advance(30_000);
    server.takesMs = 0;
    expect(await list()).toEqual([1, 0]);
    expect(server.asked).toBe(3);
  },
);

test("skills that were never listed are waited for once", async () => {
  const { server, list } = listing();
  server.takesMs = 3_600_000;
  expect(await list()).toEqual([0, 5000]);
  for (let time = 0; time < 100; time++) expect(await list()).toEqual([0, 0]);
  expect(server.asked).toBe(1);
});
