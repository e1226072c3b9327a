import type { PromptMessage } from "@junctor/core/mcp";
import { print, type Run, toSafeText, UsageError } from "../terminal/index.ts";
import { describeResult } from "./call-view.ts";
import { runListing } from "./listing.ts";

/** `junctor prompts` */
export const prompts: Run<"prompts"> = (parsed) =>
  runListing(parsed, {
    name: "prompts",
    verb: "get",
    operands: "PROMPT [KEY=VALUE…]",
    what: ["prompt", "prompts"],
    list: (client) => client.listPrompts(),
    toCells: ({ name, title, description, arguments: args = [] }) => [
      name,
      args.map((arg) => (arg.required === true ? `${arg.name}=…` : `[${arg.name}=…]`)).join(" "),
      description ?? title ?? "",
    ],
    read: async (client, [name = "", ...words], { isJson, signal }) => {
      const result = await client.getPrompt(name, parseArguments(words), { signal });
      if (isJson) return print(`${JSON.stringify(result, undefined, 2)}\n`);
      const text = result.messages.map(describeMessage).join("\n");
      return print(`${process.stdout.isTTY ? toSafeText(text) : text}\n`);
    },
  });

function parseArguments(words: readonly string[]): { readonly [name: string]: string } {
  return Object.fromEntries(
    words.map((word) => {
      const at = word.indexOf("=");
      if (at < 1) throw new UsageError(`${JSON.stringify(word)} is not of the form KEY=VALUE`);
      return [word.slice(0, at), word.slice(at + 1)];
    }),
  );
}

function describeMessage({ role, content }: PromptMessage): string {
  return `${role}: ${describeResult({ content: [content] })}`;
}
