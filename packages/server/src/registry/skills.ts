import type { OldChange, ResourceProvider, SkillProvider } from "@junctor/core/provider";

/** Skills with the files they are made of: `loadSkills` makes one from a folder. */
export interface SkillSource extends SkillProvider {
  /** Serves the files of the skills, and lists their `SKILL.md`. */
  readonly resources: ResourceProvider;
  onChange?(listener: (change: OldChange) => void): () => void;
}
