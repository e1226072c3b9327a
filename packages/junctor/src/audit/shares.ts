/** The callers that wrote to one file, with the bytes of each. Undefined stands for callers without a name. */
export type Usage = Map<string | undefined, number>;

/** One file of an audit log, as far as this process knows it. */
export interface KeptFile {
  /** When it was last written to, in milliseconds since the epoch. */
  readonly writtenAt: number;
  readonly size: number;
  /** Undefined for a file of an earlier process. */
  readonly usage: Usage | undefined;
}

/** How much is kept, and for how long. */
export interface Retention {
  /** Of one file. */
  readonly maxBytes: number;
  /** Old files. */
  readonly keep: number;
  /** A file that was written to since is not removed for another caller's records. */
  readonly keepMs: number;
}

/** Whether the oldest file may be removed: it is old enough, or all records that are kept are of one caller. */
export function mayRemoveOldest(
  oldest: KeptFile,
  all: readonly KeptFile[],
  keepMs: number,
  now: number,
): boolean {
  return now - oldest.writtenAt >= keepMs || isOfOneCaller(all);
}

/**
 * Whether a caller has used up its share of the space. Space is shared only when it is short: the files are full, and the oldest
 * is too young to be removed. Then each caller may have an equal part of it, and all together twice the space. Calls that have begun
 * may end: `isUnderway` doubles both.
 */
export function hasUsedUp(
  { caller, isUnderway }: { readonly caller: string | undefined; readonly isUnderway: boolean },
  files: readonly KeptFile[],
  { maxBytes, keep, keepMs }: Retention,
  now: number,
): boolean {
  const [oldest] = files;
  const space = maxBytes * (keep + 1);
  const used = files.reduce((sum, { size }) => sum + size, 0);
  if (oldest === undefined || used < space || mayRemoveOldest(oldest, files, keepMs, now)) return false;
  const callers = new Set(files.flatMap(({ usage }) => [...(usage?.keys() ?? [])]));
  const own = files.reduce((sum, { usage }) => sum + (usage?.get(caller) ?? 0), 0);
  const factor = isUnderway ? 2 : 1;
  return own >= (factor * space) / Math.max(1, callers.size) || used >= 2 * factor * space;
}

function isOfOneCaller(files: readonly KeptFile[]): boolean {
  const callers = new Set(files.flatMap(({ usage }) => [...(usage?.keys() ?? [])]));
  return callers.size <= 1 && files.every(({ usage }) => usage !== undefined);
}
