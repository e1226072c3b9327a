import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { SkillError } from "../../packages/core/src/errors/index.ts";
import { readFrontMatter } from "../../packages/core/src/mcp/skill.ts";
import { createCallContext } from "../../packages/core/src/provider/context.ts";
import { createOperation } from "../../packages/core/src/provider/operation.ts";
import type { Provider } from "../../packages/core/src/provider/provider.ts";
import { loadSkills } from "../../packages/server/src/skills/load-skills.ts";
import { listItems, readResource, valueOf, watchResource } from "../support/use-provider.ts";

let folder = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "junctor-skills-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function write(place: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(join(folder, place)), { recursive: true });
  await writeFile(join(folder, place), content);
}

const readDirectory = async (skills: Provider, uri: string): Promise<unknown> => {
  const outcome = await skills.call(createOperation("resources/directory/read", uri), createCallContext());
  return (valueOf(outcome) as { readonly resources: unknown }).resources;
};

const manifest = (name: string): string => `---\nname: ${name}\ndescription: About ${name}\n---\n\nBody.\n`;

describe("a folder of skills", () => {
  test("is served with the size and digest of every file", async () => {
    await write("refunds/SKILL.md", manifest("refunds"));
    await write("refunds/examples/a b.md", "An example.\n");
    await write("refunds/picture.png", Uint8Array.of(0xff, 0, 1));
    await write("README.md", "Of no skill.");
    const skills = await loadSkills(folder, { prefix: "acme" });
    const [skill, ...others] = await listItems(skills, "skills");
    expect(others).toEqual([]);
    expect(skill?.uri).toBe("skill://acme/refunds/SKILL.md");
    expect(skill?.frontmatter).toEqual({ name: "refunds", description: "About refunds" });
    const digest = `sha256:${createHash("sha256").update("An example.\n").digest("hex")}`;
    expect(skill?.resources).toContainEqual({
      uri: "skill://acme/refunds/examples/a%20b.md",
      digest,
      size: 12,
    });
    expect(skill?.resources).toHaveLength(3);
    const { result } = (await readResource(skills, "skill://acme/refunds/picture.png")) as {
      result: { value: unknown };
    };
    expect(result.value).toEqual({
      contents: [{ uri: "skill://acme/refunds/picture.png", mimeType: "image/png", blob: "/wAB" }],
    });
  });

  test("serves the bytes of a text with a byte order mark unchanged", async () => {
    const text = `\u{feff}${manifest("bom")}`;
    await write("bom/SKILL.md", text);
    const skills = await loadSkills(folder);
    const outcome = await readResource(skills, "skill://bom/SKILL.md");
    expect(outcome).toMatchObject({ result: { value: { contents: [{ text }] } } });
  });

  test("that is itself a skill is served under its name", async () => {
    await write("solo/SKILL.md", manifest("solo"));
    const skills = await loadSkills(join(folder, "solo"));
    expect((await listItems(skills, "skills")).map(({ uri }) => uri)).toEqual(["skill://solo/SKILL.md"]);
  });

  test("lists the files of nested skills with the outer one too", async () => {
    await write("outer/SKILL.md", manifest("outer"));
    await write("outer/inner/SKILL.md", manifest("inner"));
    const skills = await loadSkills(folder);
    const counts = (await listItems(skills, "skills")).map(({ frontmatter, resources }) => [
      frontmatter.name,
      resources.length,
    ]);
    expect(Object.fromEntries(counts)).toEqual({ inner: 1, outer: 2 });
  });

  test("gives the children of its folders, and refuses files and unknown URIs as folders", async () => {
    await write("refunds/SKILL.md", manifest("refunds"));
    await write("refunds/examples/one.md", "1");
    const skills = await loadSkills(folder, { prefix: "acme" });
    expect(await readDirectory(skills, "skill://acme/refunds")).toMatchObject([
      { uri: "skill://acme/refunds/SKILL.md", name: "refunds", mimeType: "text/markdown" },
      { uri: "skill://acme/refunds/examples", name: "examples", mimeType: "inode/directory" },
    ]);
    for (const uri of ["skill://acme/refunds/SKILL.md", "skill://acme/refund", "skill://acme/refunds/"])
      await expect(readDirectory(skills, uri)).rejects.toMatchObject({ what: "directory" });
  });

  test.runIf(process.platform !== "win32")(
    "refuses a link that leads out of it, and follows others",
    async () => {
      await write("one/SKILL.md", manifest("one"));
      await write("one/real.md", "real");
      await symlink(join(folder, "one/real.md"), join(folder, "one/link.md"));
      await symlink(join(folder, "one"), join(folder, "one/round"));
      const skills = await loadSkills(join(folder, "one"));
      expect((await listItems(skills, "skills"))[0]?.resources).toHaveLength(3);
      await symlink("/etc/hostname", join(folder, "one/secret.md"));
      await expect(loadSkills(folder)).rejects.toMatchObject({
        code: "skill.outside",
        subject: "one/secret.md",
      });
    },
  );

  test("with more than 512 files in one skill is refused with the limit", async () => {
    await write("many/SKILL.md", manifest("many"));
    await Promise.all(Array.from({ length: 512 }, (_, index) => write(`many/${index}.md`, "")));
    await expect(loadSkills(folder)).rejects.toThrow("has 513 files; a skill may have 512");
  });

  test("with more than 16 MiB in one skill is refused with the limit", async () => {
    await write("big/SKILL.md", manifest("big"));
    await write("big/a.bin", new Uint8Array(9 * 1024 * 1024));
    await write("big/b.bin", new Uint8Array(9 * 1024 * 1024));
    await expect(loadSkills(folder)).rejects.toThrow("a skill may have 16777216");
  });

  test("with a skill whose folder has another name is refused", async () => {
    await write("other/SKILL.md", manifest("refunds"));
    await expect(loadSkills(folder)).rejects.toThrow("give its folder that name");
  });

  test("that is not there, and a prefix that is not a name, are refused", async () => {
    await expect(loadSkills(join(folder, "none"))).rejects.toThrow("There is no folder of skills");
    for (const prefix of ["../up", "a//b", "a b", ".."])
      await expect(loadSkills(folder, { prefix })).rejects.toThrow(TypeError);
  });

  test("is read again when it changes, and stays as it was while it cannot be served", async () => {
    await write("one/SKILL.md", manifest("one"));
    const onError = vi.fn<(error: unknown) => void>();
    using skills = await loadSkills(folder, { watch: true, onError });
    const heard: unknown[] = [];
    skills.onChange?.((change) => heard.push(change));
    await watchResource(skills, "skill://one/SKILL.md", (notice) => heard.push(notice));
    await write("one/SKILL.md", `${manifest("one")}More.\n`);
    await expect.poll(() => heard).toContainEqual({ kind: "updated", uri: "skill://one/SKILL.md" });
    expect(heard).toContainEqual({ part: "skills" });
    await write("one/SKILL.md", "no front matter");
    await expect.poll(() => onError.mock.calls.length).toBeGreaterThan(0);
    const outcome = await readResource(skills, "skill://one/SKILL.md");
    expect(JSON.stringify(outcome)).toContain("More.");
  });
});

describe("front matter", () => {
  const read = (yaml: string): Promise<unknown> => readFrontMatter(`---\n${yaml}\n---\n`, "x/SKILL.md");

  test("is read as YAML 1.2: dates and yes stay strings", async () => {
    expect(await read("name: x\ndescription: d\ndate: 2026-01-02\nok: yes\nn: 1.5")).toEqual({
      name: "x",
      description: "d",
      date: "2026-01-02",
      ok: "yes",
      n: 1.5,
    });
  });

  test("may have Windows line ends", async () => {
    expect(await readFrontMatter("---\r\nname: x\r\ndescription: d\r\n---\r\nBody", "x")).toMatchObject({
      name: "x",
    });
  });

  test.each([
    ["name: X\ndescription: d", "its name must be"],
    ["name: a--b\ndescription: d", "its name must be"],
    ["name: x", "its description is missing"],
    ["- name", "not a list of fields"],
    ["name: [", "not YAML"],
    ["name: x\ndescription: d\nn: .inf", "JSON cannot hold"],
    ["name: x\ndescription: d\nn: &a [*a]", "JSON cannot hold"],
    ["name: x\ndescription: d\nmetadata:\n  io.modelcontextprotocol/x: 1", "belongs to the protocol"],
  ])("%j is refused", async (yaml, reason) => {
    await expect(read(yaml)).rejects.toThrow(reason);
    await expect(read(yaml)).rejects.toBeInstanceOf(SkillError);
  });

  test("that expands without end is refused", async () => {
    const lines = ["a: &a [x,x,x,x,x,x,x,x,x]"];
    for (const [to, from] of ["ba", "cb", "dc", "ed", "fe", "gf"])
      lines.push(`${to}: &${to} [${`*${from},`.repeat(9)}]`);
    await expect(read(`name: x\ndescription: d\n${lines.join("\n")}`)).rejects.toThrow("not YAML");
  });

  test("that is missing is refused", async () => {
    await expect(readFrontMatter("# Title", "x")).rejects.toThrow("does not begin with a front matter");
    await expect(readFrontMatter("---\nname: x\n", "x")).rejects.toThrow(
      "does not begin with a front matter",
    );
  });
});
