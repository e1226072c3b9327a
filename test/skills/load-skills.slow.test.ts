import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadSkills } from "../../packages/server/src/skills/load-skills.ts";

test("a folder with 10,000 files of skills is refused with the limit, and read no further", async () => {
  const folder = await mkdtemp(join(tmpdir(), "junctor-many-"));
  try {
    for (let skill = 0; skill < 20; skill++) {
      const own = join(folder, `s${skill}`);
      await mkdir(own);
      await writeFile(join(own, "SKILL.md"), `---\nname: s${skill}\ndescription: d\n---\n`);
      await Promise.all(Array.from({ length: 500 }, (_, index) => writeFile(join(own, `${index}.md`), "")));
    }
    await expect(loadSkills(folder)).rejects.toMatchObject({ code: "skill.too_large" });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
