import { type ConfigValue, refuse } from "./value-readers.ts";

interface Texts {
  readonly [name: string]: string;
}

const line = /^(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*)$/;
const quoted = /^(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|`([^`]*)`)\s*(?:#.*)?$/;

/** The variables in the file that an `envFile` names. Values are taken as they stand: no variable is filled in. */
export function readEnvFile(given: ConfigValue, file: string | undefined): Texts {
  const { readText: read } = given.findings.source;
  if (file === undefined) return {};
  if (read === undefined) return refuse(given, "cannot be read here: write its variables into env") ?? {};
  try {
    return parseEnvFile(read(file), (number, why) => refuse(given, `line ${number} of the file ${why}`));
  } catch (error) {
    return refuse(given, `cannot be read (${explain(error)}): create the file, or remove envFile`) ?? {};
  }
}

/** Parses lines of `KEY=VALUE`, as dotenv spells them. Other lines are left out and reported. */
export function parseEnvFile(text: string, onWrong: (line: number, why: string) => void): Texts {
  const entries: [string, string][] = [];
  for (const [index, written] of text
    .replace(/^\uFEFF/, "")
    .split(/\r\n|\r|\n/)
    .entries()) {
    const trimmed = written.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const [, name, value] = line.exec(trimmed) ?? [];
    if (name === undefined || value === undefined) {
      onWrong(index + 1, "is not NAME=VALUE: correct it, or put a # before it");
      continue;
    }
    const plain = unquote(value);
    if (plain === undefined) onWrong(index + 1, "has a quote without its pair: close it in the same line");
    else entries.push([name, plain]);
  }
  return Object.fromEntries(entries);
}

function unquote(value: string): string | undefined {
  if (!/^["'`]/.test(value)) return value.replace(/(?:^|\s+)#.*$/, "");
  const [whole, double, single, back] = quoted.exec(value) ?? [];
  if (whole === undefined) return undefined;
  // Only double quotes have escapes.
  return double?.replaceAll(/\\(.)/g, (_, letter: string) => escapes[letter] ?? letter) ?? single ?? back;
}

function explain(error: unknown): string {
  if (error instanceof RangeError) return "it is too large";
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" ? "there is no such file" : (code ?? "why is not known");
}

const escapes: { readonly [letter: string]: string } = { n: "\n", r: "\r", t: "\t" };
