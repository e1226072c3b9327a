import type { Tool } from "@junctor/core/mcp";
import { clip } from "@junctor/core/schema";

const maxParameters = 110;
const maxDescription = 100;

/** A tool in one line: `name(owner: string, body?: string) — What it does`. Long ones are cut. */
export function signatureOf(tool: Tool): string {
  const about = firstSentence(tool.description ?? tool.title ?? "");
  return `${tool.name}(${parametersOf(tool)})${about === "" ? "" : ` — ${clip(about, maxDescription)}`}`;
}

/** What a tool takes, all of it: for a call that was refused. */
export function parametersOf(tool: Tool, most: number = maxParameters): string {
  const { properties, required } = tool.inputSchema;
  if (!isObject(properties)) return "";
  const needed = new Set(Array.isArray(required) ? required : []);
  const names = Object.keys(properties);
  const sorted = [...names.filter((name) => needed.has(name)), ...names.filter((name) => !needed.has(name))];
  let text = "";
  for (const name of sorted) {
    const part = `${name}${needed.has(name) ? "" : "?"}: ${typeOf(properties[name])}`;
    const joined = text === "" ? part : `${text}, ${part}`;
    if (joined.length > most) return text === "" ? "…" : `${text}, …`;
    text = joined;
  }
  return text;
}

const maxChoices = 40;

function typeOf(schema: unknown): string {
  if (!isObject(schema)) return "any";
  const { enum: choices, type, items } = schema;
  if (Array.isArray(choices)) {
    const text = choices.map((choice) => JSON.stringify(choice)).join("|");
    if (text.length <= maxChoices) return text;
  }
  if (type === "array") return `${typeOf(items)}[]`;
  if (Array.isArray(type)) return type.map(String).join("|");
  return typeof type === "string" ? type : "any";
}

function firstSentence(text: string): string {
  const [line = ""] = text.trim().split("\n", 1);
  return /^.{20,}?[.!?](?=\s)/.exec(line)?.[0] ?? line;
}

function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
