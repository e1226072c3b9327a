// Resources, templates, prompts and completion beside a tool that changes one of them.
//
//   npx --no-install junctor call note text="buy milk" -- node examples/resources-and-prompts.mjs

import {
  createCompletionRegistry,
  createPromptRegistry,
  createRegistry,
  createResourceRegistry,
  createServer,
  resourceLink,
  serveStdio,
  text,
} from "junctor";

const notes = new Map([["1", "Call the plumber."]]);

const resources = createResourceRegistry();
resources.registerTemplate(
  "note://{id}",
  { name: "A note", mimeType: "text/plain" },
  ({ variables }) => notes.get(variables.id) ?? "(no such note)",
);

const prompts = createPromptRegistry();
prompts.register(
  "summarise",
  { description: "Summarises a note.", arguments: [{ name: "id", required: true }] },
  ({ id }) => `Summarise this in five words: ${notes.get(id)}`,
);

const completion = createCompletionRegistry();
completion.registerPrompt("summarise", "id", (typed) =>
  [...notes.keys()].filter((id) => id.startsWith(typed)),
);

const registry = createRegistry({ resources, prompts, completion });
registry.register(
  "note",
  {
    description: "Writes a note down.",
    input: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  },
  (args) => {
    const id = String(notes.size + 1);
    notes.set(id, args.text);
    resources.updated(`note://${id}`);
    return [text(`Noted as ${id}.`), resourceLink({ uri: `note://${id}`, name: `Note ${id}` })];
  },
);

await serveStdio(createServer(registry, { name: "notes", version: "1.0.0" }));
