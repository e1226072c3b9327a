import { secretMark } from "../../log/index.ts";

/** The most lines that are compared one by one; of longer files the part that differs is shown as a whole. */
const maxLines = 2000;
const context = 2;

/** The lines in which two texts differ, with some around them, marked as `diff -u` marks them. */
export function diffLines(before: string, after: string): readonly string[] {
  const [a, b] = [toLines(before), toLines(after)];
  const marked = a.length > maxLines || b.length > maxLines ? compareEnds(a, b) : compare(a, b);
  const shown = new Set<number>();
  marked.forEach((line, index) => {
    if (line.startsWith(" ")) return;
    for (let near = index - context; near <= index + context; near++) shown.add(near);
  });
  return marked.flatMap((line, index) => {
    if (!shown.has(index)) return [];
    return index > 0 && !shown.has(index - 1) ? ["…", line] : [line];
  });
}

/** Takes secrets out of lines of any format: as they are, and as JSON, TOML and YAML write them between quotes. */
export function createHideInText(secrets: readonly string[]): (line: string) => string {
  const written = secrets.flatMap((secret) => [
    ...secret.split(/\r?\n/),
    JSON.stringify(secret).slice(1, -1),
    secret.replaceAll("'", "''"),
  ]);
  const hidden = [...new Set(written)]
    .filter(({ length }) => length >= minSecretLength)
    .toSorted((a, b) => b.length - a.length);
  return (line) => hidden.reduce((shown, secret) => shown.replaceAll(secret, secretMark), line);
}

/** Shorter texts would hide half of every line. */
const minSecretLength = 6;

function toLines(text: string): readonly string[] {
  const lines = text.split(/\r?\n/);
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

/** By the longest common subsequence. */
function compare(a: readonly string[], b: readonly string[]): readonly string[] {
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  const at = (i: number, j: number): number => lengths[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) {
      const row = lengths[i];
      if (row !== undefined)
        row[j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  const marked: string[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      marked.push(` ${a[i]}`);
      i++;
      j++;
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) marked.push(`-${a[i++]}`);
    else marked.push(`+${b[j++]}`);
  }
  return marked;
}

function compareEnds(a: readonly string[], b: readonly string[]): readonly string[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const same = (line: string): string => ` ${line}`;
  return [
    ...a.slice(0, start).map(same),
    ...a.slice(start, a.length - end).map((line) => `-${line}`),
    ...b.slice(start, b.length - end).map((line) => `+${line}`),
    ...a.slice(a.length - end).map(same),
  ];
}
