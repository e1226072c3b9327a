import { type ErrorEntry, loadErrorEntries } from "@junctor/core/errors";
import { nearest } from "@junctor/core/options";
import { junctor } from "../../invocation/index.ts";
import { lineWidth, print, type Run, UsageError, wrap } from "../terminal/index.ts";

/** `junctor explain` */
export const explain: Run<"explain"> = async ({ flags, operands: [word, stray] }) => {
  if (word === undefined || stray !== undefined)
    throw new UsageError(
      "explain takes one code, as an error or the log shows it, such as upstream.unavailable",
    );
  const entries = await loadErrorEntries();
  const found = findEntries(word, entries);
  if (found.length === 0) {
    const meant = nearest(
      word,
      entries.map(({ code }) => code),
    );
    const hint = meant === undefined ? "docs/reference/errors.md lists them all" : `did you mean ${meant}?`;
    throw new UsageError(`there is no error ${JSON.stringify(word)}; ${hint}`);
  }
  await print(flags.json ? `${JSON.stringify(found, undefined, 2)}\n` : found.map(describeEntry).join("\n"));
  return 0;
};

/** By code, class, or JSON-RPC number without its minus sign, which a command line would take for a flag. */
function findEntries(word: string, entries: readonly ErrorEntry[]): readonly ErrorEntry[] {
  return entries.filter(
    ({ code, className, number }) =>
      word === code || word === className || (number !== undefined && number < 0 && String(-number) === word),
  );
}

function describeEntry({
  className,
  code,
  meaning,
  advice,
  fields,
  number,
  crossing,
  status,
  exit,
}: ErrorEntry): string {
  const lines: readonly (readonly [string, string])[] = [
    ["means", meaning],
    ["what to do", advice.replaceAll(/`junctor (.*?)`/g, (_, words: string) => `\`${junctor(words)}\``)],
    ["class", className],
    ...Object.entries(fields).map(([name, text]) => [`.${name}`, text] as const),
    ...(number === undefined || number === 0 ? [] : [["JSON-RPC", String(number)] as const]),
    ...(crossing === undefined ? [] : [["crosses the wire", `as ${crossing.as}`] as const]),
    ...(status === undefined ? [] : [["HTTP status", String(status)] as const]),
    ["exit code", String(exit)],
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  const rows = lines.flatMap(([name, text]) => {
    const [first = "", ...rest] = wrap(text, lineWidth - width - 4);
    return [`  ${name.padEnd(width)}  ${first}`, ...rest.map((line) => " ".repeat(width + 4) + line)];
  });
  return [code, ...rows, ""].join("\n");
}
