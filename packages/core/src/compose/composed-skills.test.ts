import { expect, test } from "vitest";
import type { Skill } from "../mcp/skill.ts";
import { createCallContext } from "../provider/context.ts";
import { Listing } from "../provider/listing.ts";
import type { Catalog } from "./catalog.ts";
import { ComposedSkills } from "./composed-skills.ts";
import type { View } from "./view.ts";

const toSkill = (name: string): Skill => {
  const uri = `skill://${name}/SKILL.md`;
  const digest = `sha256:${"a".repeat(64)}`;
  return { uri, frontmatter: { name, description: "" }, resources: [{ uri, digest }] };
};

test("the same lists of members are one list, made once: each page of it asks for the whole", async () => {
  let judged = 0;
  const listed = new Listing(Object.freeze(["one", "two", "hidden"].map(toSkill)));
  const members = ["a", "b"].map((name) => ({
    name,
    provider: { list: () => Promise.resolve(listed) },
  }));
  const toNames = (name: string) => ({ toPublic: (uri: string) => uri.replace("://", `://${name}/`) });
  const uris = new Map(members.map(({ name }) => [name, toNames(name)]));
  const view = {
    allowsUri: (_member: string, uri: string) => {
      judged++;
      return !uri.includes("hidden");
    },
  } as unknown as View;
  const catalog = { members, snapshotFor: () => ({ uris }) } as unknown as Catalog;
  const skills = new ComposedSkills({ catalog, viewFor: () => view });
  const first = await skills.list(createCallContext(), undefined);
  expect(first.items.map(({ uri }) => uri)).toEqual([
    "skill://a/one/SKILL.md",
    "skill://a/two/SKILL.md",
    "skill://b/one/SKILL.md",
    "skill://b/two/SKILL.md",
  ]);
  expect(judged).toBe(6);
  expect(await skills.list(createCallContext(), undefined)).toBe(first);
  expect(judged).toBe(6);
});
