import { expect, test } from "vitest";
import { RawJson } from "../../../core/src/json/raw.ts";
import type { Skill } from "../../../core/src/mcp/skill.ts";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { ServerSkills } from "./skills.ts";

const digest = `sha256:${"a".repeat(64)}`;
const extensions = { "io.modelcontextprotocol/skills": {} };

/** A client of a server that lists so many skills of so many files each. */
function listing(count: number, files: number) {
  const page = RawJson.fromText(
    JSON.stringify({ skills: Array.from({ length: count }, (_, index) => toSkill(`s${index}`, files)) }),
  );
  const clock = createVirtualClock();
  const warnings: string[] = [];
  let lists = 0;
  const { skills, kept } = new ServerSkills({
    request: () => {
      lists++;
      return Promise.resolve(page);
    },
    capabilities: () => Promise.resolve({ extensions }),
    readResource: () => Promise.reject(new Error("no file is read")),
    target: "it",
    clock,
    onWarning: (text) => warnings.push(text),
  });
  return { skills, invalidate: () => kept.invalidate(), clock, warnings, lists: () => lists };
}

function toSkill(name: string, files: number): Skill {
  const folder = `skill://${name}`;
  const others = Array.from({ length: files }, (_, index) => ({ uri: `${folder}/${index}.md`, digest }));
  const uri = `${folder}/SKILL.md`;
  return { uri, frontmatter: { name, description: "" }, resources: [{ uri, digest }, ...others] };
}

test("a short list is fetched again as its server says", async () => {
  const { skills, lists } = listing(10, 1);
  await skills.listSkills();
  await skills.listSkills();
  expect(lists()).toBe(2);
});

test("a long list is fetched once in ten seconds, whatever its server says and announces", async () => {
  const { skills, invalidate, clock, lists } = listing(1000, 10);
  for (let time = 0; time < 50; time++) {
    expect(await skills.listSkills()).toHaveLength(1000);
    invalidate();
  }
  expect(lists()).toBe(1);
  await clock.advance(10_000);
  await skills.listSkills();
  expect(lists()).toBe(2);
});

test("a list that is too long fails with a warning, and is not fetched again for ten seconds", async () => {
  const { skills, clock, warnings, lists } = listing(5000, 20);
  for (let time = 0; time < 20; time++)
    await expect(skills.listSkills()).rejects.toThrow("longer than 8388608 bytes");
  expect(lists()).toBe(1);
  expect(warnings).toEqual([expect.stringContaining("The list of skills cannot be used")]);
  await clock.advance(10_000);
  await expect(skills.listSkills()).rejects.toThrow("longer");
  expect(lists()).toBe(2);
});

test("other work has its turn while a long list is read", async () => {
  const { skills } = listing(2000, 25);
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await skills.listSkills();
  isOver = true;
  expect(turns).toBeGreaterThan(1);
});
