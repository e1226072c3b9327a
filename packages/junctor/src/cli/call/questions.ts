import type { QuestionHandlers } from "@junctor/client";
import { isJsonObject, type JsonObject } from "@junctor/core/json";
import type { Elicited } from "@junctor/core/mcp";
import { toSchema } from "@junctor/server/internal";
import {
  type AskLine,
  describeType,
  parseValue,
  toSafeLine,
  toSafeText,
  toValueType,
  type ValueType,
  withTerminal,
} from "../terminal/index.ts";

interface QuestionsOptions {
  /** Whether there is a person at a terminal to ask. */
  readonly isInteractive: boolean;
  /** Says something to the person, on a line of its own. */
  readonly say: (line: string) => void;
  /** Called when the person presses Ctrl-C at a question. */
  readonly onInterrupt: () => void;
}

/**
 * Puts what a server asks to the person at the terminal, one question after the other; the end of input (Ctrl-D)
 * declines. Without a terminal every question is declined, and a note says so.
 */
export function createQuestions({ isInteractive, say, onInterrupt }: QuestionsOptions): QuestionHandlers {
  let last: Promise<unknown> = Promise.resolve();
  /** Questions of one round come together, but a terminal can only ask one. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = last.then(work, work);
    last = turn;
    return turn;
  };
  const decline = (what: string): Elicited => {
    say(`junctor: the server asks: ${what} (declined: there is no terminal to ask on)`);
    return { action: "decline" };
  };

  return {
    elicit: (params, signal) => {
      const message = messageOf(params);
      if (!isInteractive) return decline(toSafeLine(message));
      return inTurn(() => withTerminal(onInterrupt, signal, (ask) => fillIn(message, params, ask, say)));
    },
    elicitUrl: (params, signal) => {
      const message = messageOf(params);
      // As a browser would write it: a name in another alphabet is seen for what it is.
      const url = new URL(String(params["url"]));
      if (!isInteractive) return decline(`${toSafeLine(message)} ${url.href}`);
      return inTurn(() => withTerminal(onInterrupt, signal, (ask) => visit(message, url, ask, say)));
    },
  };
}

function messageOf({ message }: JsonObject): string {
  return typeof message === "string" ? toSafeText(message) : "(it does not say what for)";
}

async function fillIn(
  message: string,
  params: JsonObject,
  ask: AskLine,
  say: QuestionsOptions["say"],
): Promise<Elicited> {
  const schema = toFormPart(params["requestedSchema"]);
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  say(`\nThe server asks: ${message}  (Ctrl-D declines)`);
  const content = Object.create(null) as Record<string, unknown>;
  for (const [name, field] of Object.entries(toFormPart(schema["properties"]))) {
    const answer = await askField(
      { name, schema: toFormPart(field), isRequired: required.includes(name) },
      ask,
      say,
    );
    if (answer === "declined") {
      say("");
      return { action: "decline" };
    }
    if (answer.value !== undefined) content[name] = answer.value;
  }
  return { action: "accept", content };
}

interface Field {
  readonly name: string;
  readonly schema: JsonObject;
  readonly isRequired: boolean;
}

/** Asks for a field until the answer fits. */
async function askField(
  field: Field,
  ask: AskLine,
  say: QuestionsOptions["say"],
): Promise<{ readonly value: unknown } | "declined"> {
  const { schema, isRequired } = field;
  const type = toValueType(schema, schema);
  for (const line of describeChoices(schema)) say(line);
  for (;;) {
    const line = await ask(toPrompt(field, type));
    if (line === undefined) return "declined";
    const text = line.trim();
    if (text === "" && schema["default"] !== undefined) return { value: schema["default"] };
    if (text === "" && !isRequired) return { value: undefined };
    const parsed = parseValue(toTexts(text, type), type);
    const problem = parsed.ok ? await misfit(parsed.value, schema) : `that ${parsed.problem}`;
    if (parsed.ok && problem === undefined) return { value: parsed.value };
    say(`  ${text === "" ? "an answer is needed" : problem}`);
  }
}

function toPrompt({ name, schema, isRequired }: Field, type: ValueType): string {
  const { title, description, default: initial } = schema;
  const label = typeof title === "string" && title !== "" ? title : name;
  const about = typeof description === "string" ? `, ${description}` : "";
  const fallback =
    initial !== undefined ? ` [${shown(initial)}]` : isRequired ? "" : " [leave empty to skip]";
  const commas = type.kinds.includes("array") ? ", separated by commas" : "";
  return `${toSafeLine(`${label} (${describeType(type)}${commas}${about})${fallback}`)}: `;
}

/** Choices that have a title of their own, each on a line. */
function describeChoices(schema: JsonObject): readonly string[] {
  const items = toFormPart(schema["items"]);
  const lists = [schema["oneOf"], schema["anyOf"], items["anyOf"], items["oneOf"]];
  return lists
    .flatMap((list) => (Array.isArray(list) ? list.map(toFormPart) : []))
    .flatMap(({ const: value, title }) =>
      typeof title === "string" ? [toSafeLine(`${shown(value)}: ${title}`)] : [],
    )
    .map((line) => `  ${line}`);
}

function toTexts(text: string, { kinds }: ValueType): readonly string[] {
  if (kinds.includes("array") && !text.startsWith("[")) return text.split(",").map((item) => item.trim());
  if (!kinds.includes("boolean")) return [text];
  if (/^y(es)?$/i.test(text)) return ["true"];
  return /^no?$/i.test(text) ? ["false"] : [text];
}

/** The fault of a value whose type is right: its length, range or format. */
async function misfit(value: unknown, schema: JsonObject): Promise<string | undefined> {
  const { default: _, enumNames: __, ...checked } = schema;
  const verdict = await toSchema(checked).check(value);
  return verdict.ok ? undefined : `that ${verdict.issues.map((issue) => issue.message).join("; ")}`;
}

async function visit(
  message: string,
  url: URL,
  ask: AskLine,
  say: QuestionsOptions["say"],
): Promise<Elicited> {
  say(`\nThe server asks you to visit a page: ${message}`);
  say(`  ${url.href}`);
  say(`It is at ${url.host}. Open it in your browser if you trust it; it is not opened for you.`);
  const line = await ask("Did you, or will you, open it? (yes|no): ");
  return /^y(es)?$/i.test(line?.trim() ?? "") ? { action: "accept", content: {} } : { action: "decline" };
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.map(shown).join(", ");
  return typeof value === "string" ? value : JSON.stringify(value);
}

function toFormPart(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}
