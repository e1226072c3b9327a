// The skills of the test fixtures, served on stdio by @olaservo/ext-skills and the official SDK, in both eras.

import { fileURLToPath } from "node:url";
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { discoverSkills, registerSkillResources } from "@olaservo/ext-skills/server";

const folder = fileURLToPath(new URL("../../../test/fixtures/skills", import.meta.url));
const skills = discoverSkills(folder);
serveStdio(() => {
  const server = new McpServer({ name: "ext-skills", version: "1.0.0" }, { capabilities: { resources: {} } });
  registerSkillResources(server, skills, folder, { template: true, directoryRead: true });
  return server;
});
