import { ToolError } from "@junctor/core/errors";
import { argumentsIn, type CommandTool, type CommandWord, fillWord } from "../../config/index.ts";

type Values = { readonly [name: string]: unknown };

/** Longest word; systems refuse a little more than this. */
const maxWordBytes = 100 * 1024;
/** The most bytes of all words. */
const maxBytes = 1024 * 1024;

/** The words of a command with the arguments of a call in them, each as a whole. Throws a `ToolError` for what no command can take. */
export function toWords(
  { run, input }: Pick<CommandTool, "run" | "input">,
  given: object,
): readonly string[] {
  const values = withDefaults(input, given);
  const words: string[] = [];
  for (const part of run) words.push(...toGroup(part, values, words));
  const bytes = words.reduce((sum, word) => sum + Buffer.byteLength(word) + 1, 0);
  if (bytes > maxBytes)
    throw new ToolError(`The arguments have ${bytes} bytes in all: send at most ${maxBytes}`);
  return words;
}

/** The standard input of a command. */
export function toStdin({ stdin, input }: Pick<CommandTool, "stdin" | "input">, given: object): string {
  const values = withDefaults(input, given);
  return fillWord(stdin ?? "", (name) => toText(values[name] ?? ""));
}

function withDefaults(input: CommandTool["input"], given: object): Values {
  const properties = Object.entries((input?.["properties"] ?? {}) as { readonly [name: string]: unknown });
  const defaults = properties.flatMap(([name, schema]) =>
    typeof schema === "object" && schema !== null && "default" in schema ? [[name, schema.default]] : [],
  );
  return Object.fromEntries([...defaults, ...Object.entries(given)]) as Values;
}

/** No words where an argument of the word, or of a word of the list, is not given. */
function toGroup(part: CommandWord, values: Values, before: readonly string[]): readonly string[] {
  const group = typeof part === "string" ? [part] : part;
  const isMissing = group.flatMap(argumentsIn).some((name) => (values[name] ?? null) === null);
  if (isMissing) return [];
  const words: string[] = [];
  for (const word of group) words.push(...toWholeWords(word, values, [...before, ...words]));
  return words;
}

/** A list becomes a word for each of its values where it is the whole word. */
function toWholeWords(word: string, values: Values, before: readonly string[]): readonly string[] {
  const [name = ""] = argumentsIn(word);
  const value = values[name];
  if (word === `{${name}}` && Array.isArray(value))
    return value.map((each) => assertWord(toText(each), name, before));
  const filled = fillWord(word, (each) => toText(values[each]));
  if (name === "") return [filled];
  return [assertWord(filled, name, word.startsWith(`{${name}}`) ? before : ["--"])];
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function assertWord(word: string, name: string, before: readonly string[]): string {
  if (word.includes("\0")) throw new ToolError(`${name} has a NUL character, which no command can take`);
  if (Buffer.byteLength(word) > maxWordBytes)
    throw new ToolError(`${name} is longer than ${maxWordBytes} bytes, which no command can take`);
  if (word.startsWith("-") && !before.includes("--"))
    throw new ToolError(
      `${name} begins with "-", which the program would take for an option: send another value`,
    );
  return word;
}
