import { setTimeout as sleep } from "node:timers/promises";
import { ToolError } from "../../packages/core/src/errors/index.ts";
import { elicit, elicitUrl } from "../../packages/core/src/mcp/question.ts";
import type { Question } from "../../packages/core/src/mcp/types.ts";
import {
  inputRequired,
  audio,
  embedResource,
  image,
  resourceLink,
  text,
} from "../../packages/core/src/provider/content.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";

/** Tools for each thing the command line must cope with. `onAborted` is told when a call of `slow` was given up. */
export function createOddRegistry(onAborted?: () => void): Registry {
  const registry = createRegistry();

  registry.register(
    "types",
    { description: "Says back its arguments.\nNot in a table.", input: types },
    (args) => JSON.stringify(args),
  );

  registry.register(
    "big",
    { input: { type: "object", properties: { bytes: { type: "integer" } }, required: ["bytes"] } },
    ({ bytes }) => "x".repeat(bytes),
  );

  registry.register("fail", {}, () => {
    throw new ToolError("No such city. Try a larger one.");
  });

  registry.register("gallery", {}, () => [
    text("first"),
    image(new Uint8Array(2048), "image/png"),
    audio(new Uint8Array(3), "audio/wav"),
    resourceLink({ uri: "note://1", name: "one" }),
    embedResource("note://2", "inside", "text/plain"),
    embedResource("note://3", new Uint8Array(5), "application/octet-stream"),
  ]);

  registry.register("steps", {}, async (_, context) => {
    await context.progress(1, 2, "half way");
    await context.log("warning", { hot: true }, "oven");
    await context.progress(2, 2);
    return "done";
  });

  registry.register("slow", {}, async function* (_, { signal }) {
    signal.addEventListener("abort", () => onAborted?.(), { once: true });
    yield "begun ";
    yield { type: "progress", progress: 5, total: 9 };
    await sleep(60_000, undefined, { signal });
  });

  registry.register("mutter", {}, async function* () {
    yield { type: "toolUse", name: "other" };
    return "the result";
  });

  registry.register("hostile", { description: "\u001b[31mred\u001b[0m" }, async function* () {
    yield "\u001b]52;c;cHduZWQ=\u0007safe";
  });

  registry.register("order", {}, (_, { answers }) => {
    const form = answers.elicited("form");
    if (form === undefined)
      return inputRequired({ form: elicit("What may I bring?", order, ["dish", "table"]) });
    return form.action === "accept" ? JSON.stringify(form.content) : `The user said ${form.action}.`;
  });

  registry.register("visit", {}, (_, { answers }) => {
    const url = "https://example.com/sign-in?next=%2Fa";
    return answers.elicited("page")?.action ?? inputRequired({ page: elicitUrl("Sign in first.", url) });
  });

  registry.register("lure", {}, (_, { answers }) => {
    const { method, params } = elicitUrl("Click me.", "https://example.com");
    const page = { method, params: { ...params, url: "javascript:alert(1)" } } as Question;
    return answers.elicited("page")?.action ?? inputRequired({ page });
  });

  return registry;
}

const types = {
  type: "object",
  properties: {
    text: { type: "string" },
    count: { type: "integer" },
    ratio: { type: "number" },
    isOn: { type: "boolean" },
    unit: { enum: ["celsius", "fahrenheit"] },
    tags: { type: "array", items: { type: "string" } },
    sizes: { type: "array", items: { $ref: "#/$defs/size" } },
    options: { type: "object" },
    limit: { anyOf: [{ type: "integer" }, { type: "null" }] },
  },
  required: ["text"],
  additionalProperties: false,
  $defs: { size: { type: "integer" } },
} as const;

const order = {
  dish: { type: "string", title: "Dish", minLength: 2 },
  table: { type: "integer", minimum: 1 },
  spicy: { type: "boolean", default: false },
  sauce: {
    type: "string",
    oneOf: [
      { const: "r", title: "Red" },
      { const: "g", title: "Green" },
    ],
  },
};
