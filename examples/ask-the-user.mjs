// A tool that asks the user before it acts. The same code serves clients of every age: modern ones come back with the
// answer, legacy ones are asked in the middle of the call.
//
//   npx --no-install junctor call book -- node examples/ask-the-user.mjs

import { createRegistry, createServer, elicit, inputRequired, serveStdio } from "junctor";

const registry = createRegistry();

registry.register("book", { description: "Books a table." }, (_, { answers, state }) => {
  const table = answers.elicited("table");
  if (table === undefined) {
    const fields = {
      guests: { type: "integer", minimum: 1, maximum: 12, title: "How many guests" },
      isOutside: { type: "boolean", title: "Outside", default: false },
    };
    // The handler runs again from its start with the answers. The state travels with the client, sealed.
    return inputRequired({ table: elicit("Which table?", fields, ["guests"]) }, { askedAt: Date.now() });
  }
  if (table.action !== "accept") return "Nothing was booked.";
  const { guests, isOutside } = table.content;
  const seconds = Math.round((Date.now() - state.askedAt) / 1000);
  return `Booked for ${String(guests)}, ${isOutside ? "outside" : "inside"}, after ${seconds} s of thinking.`;
});

await serveStdio(createServer(registry, { name: "bookings", version: "1.0.0" }));
