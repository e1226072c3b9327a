import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "@junctor/core/json";
import { elicit } from "@junctor/core/mcp";
import { inputRequired } from "@junctor/core/provider";
import { createRegistry, type Registry } from "@junctor/server";

/** The tools served when nothing else is: enough to see a call, a stream and a question. */
export function createDemoRegistry(): Registry {
  const registry = createRegistry();

  registry.register(
    "echo",
    { description: "Says back what it was told.", input: object({ message: { type: "string" } }) },
    ({ message }) => String(message),
  );

  registry.register(
    "add",
    { description: "Adds two numbers.", input: object({ a: { type: "number" }, b: { type: "number" } }) },
    ({ a, b }) => String(Number(a) + Number(b)),
  );

  registry.register(
    "countdown",
    {
      description: "Counts down to zero, one number every 200 ms, as it happens.",
      input: object({ from: { type: "integer", minimum: 1, maximum: 100 } }),
    },
    async function* ({ from }, { signal }) {
      for (let count = Number(from); count > 0; count--) {
        yield `${count} `;
        await sleep(200, undefined, { signal });
      }
      yield "liftoff";
    },
  );

  registry.register(
    "greet",
    { description: "Asks the user for a name and greets them." },
    (_, { answers }) => {
      const answer = answers.elicited("name");
      if (answer === undefined) {
        return inputRequired({ name: elicit("What is your name?", { name: { type: "string" } }, ["name"]) });
      }
      return answer.action === "accept"
        ? `Hello, ${String(answer.content["name"])}!`
        : "Hello, whoever you are!";
    },
  );

  return registry;
}

function object(properties: { readonly [name: string]: object }): JsonObject {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}
