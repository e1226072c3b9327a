import { fileURLToPath } from "node:url";
import {
  createRegistry,
  createServer,
  loadSkills,
  type Registry,
  type Server,
  type ServerOptions,
} from "junctor";
import { registerAskingTools } from "./asking-tools.ts";
import { registerInputRequiredTools } from "./input-required-tools.ts";
import { registerPlainTools } from "./plain-tools.ts";
import { createEverythingCompletion, createEverythingPrompts } from "./prompts.ts";
import { createEverythingResources } from "./resources.ts";
import { registerTaskTools } from "./task-tools.ts";

// Beside the folder that this is compiled to.
const skills = await loadSkills(fileURLToPath(new URL("../skills", import.meta.url)));

/** Everything the official suite calls for, as one provider. */
function createEverythingRegistry(hasTasks: boolean): Registry {
  const resources = createEverythingResources();
  const prompts = createEverythingPrompts();
  const registry = createRegistry({ resources, prompts, completion: createEverythingCompletion(), skills });
  registerPlainTools(registry);
  registerAskingTools(registry);
  registerInputRequiredTools(registry);
  if (hasTasks) registerTaskTools(registry);

  // A list that changes and changes back: those who listen are told, and the next test finds what it expects.
  registry.register("test_trigger_tool_change", { description: "Changes the list of tools" }, () => {
    registry.register("test_passing_tool", { description: "Gone again at once" }, () => "");
    registry.unregister("test_passing_tool");
    return "The list of tools changed.";
  });
  registry.register("test_trigger_prompt_change", { description: "Changes the list of prompts" }, () => {
    prompts.register("test_passing_prompt", { description: "Gone again at once" }, () => "");
    prompts.unregister("test_passing_prompt");
    return "The list of prompts changed.";
  });
  return registry;
}

/** The server under test, of both eras unless `serves` says otherwise. A legacy one has no tasks. */
export function createEverythingServer(options: ServerOptions = {}): Server {
  const info = { name: "junctor-everything", title: "Junctor conformance fixture", version: "1.0.0" };
  return createServer(createEverythingRegistry(options.serves !== "legacy"), info, options);
}
