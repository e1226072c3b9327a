export { loadSkills } from "./load-skills.ts";
