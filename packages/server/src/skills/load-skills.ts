import type { LoadedSkills, LoadSkillsOptions } from "./skill-folder.ts";

/**
 * Reads a folder of skills, for `createRegistry({ skills })`. The files are kept in memory, so the digests match what is served.
 * Rejects with a `SkillError` that names the file and says what to do.
 *
 * @example
 * const skills = await loadSkills("./skills", { prefix: "acme", watch: true });
 * await serveStdio(createServer(createRegistry({ skills }), { name: "acme", version: "1.0.0" }));
 */
export async function loadSkills(folder: string, options: LoadSkillsOptions = {}): Promise<LoadedSkills> {
  // Most servers have no skills, and should not load the code that reads them.
  const { openSkillFolder } = await import("./skill-folder.ts");
  return openSkillFolder(folder, options);
}
