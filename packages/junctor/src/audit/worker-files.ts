import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";

/** The file of one worker, beside the one that a config names: `audit.worker-2.jsonl`. A rotated one is `audit.worker-2.jsonl.1`. */
export function toWorkerFile(file: string, number: number): string {
  const { stem, extension } = partsOf(file);
  return `${stem}.worker-${number}${extension}`;
}

/** The file itself, if there is one or no other, and those of workers beside it, by their numbers. */
export function findWorkerFiles(file: string): readonly string[] {
  const { stem, extension } = partsOf(file);
  const start = `${basename(stem)}.worker-`;
  const numbers = list(dirname(file)).flatMap((name) => {
    if (!name.startsWith(start)) return [];
    const number = name.slice(start.length).replace(/\.\d+$/, "");
    return number.endsWith(extension) ? [number.slice(0, number.length - extension.length)] : [];
  });
  const known = [...new Set(numbers.filter((number) => /^[1-9]\d*$/.test(number)).map(Number))];
  const own = known.length === 0 || existsSync(file) || existsSync(`${file}.1`) ? [file] : [];
  return [...own, ...known.toSorted((one, other) => one - other).map((number) => toWorkerFile(file, number))];
}

function partsOf(file: string): { readonly stem: string; readonly extension: string } {
  const extension = extname(file);
  return { stem: join(dirname(file), basename(file, extension)), extension };
}

function list(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
