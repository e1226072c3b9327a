/** How much is done: `full` is what docs/evidence/reliability.md shows, `short` is for CI. */
export type Scale = "full" | "short";

/** One line of the page. */
export interface Line {
  /** The attack or fault. */
  readonly what: string;
  /** How often it was done, with the unit: `100,000 calls`. */
  readonly count: string;
  readonly bound: string;
  readonly figure: string;
  readonly isMet: boolean;
}

/** One group of attacks. It runs in a process of its own. */
export interface Row {
  /** Heading of its table. */
  readonly title: string;
  /** One or two sentences: the parts and what they do. */
  readonly how: string;
  /** The runner kills the row after this time and counts it as failed. */
  readonly limitMinutes: number;
  /** False for a row that `npm test` already runs at a smaller scale. */
  readonly isInShort: boolean;
  run(scale: Scale): Promise<readonly Line[]>;
}

/** The seed of this run. A row that uses it prints it in its figure. */
export const seed: number = Number(process.env["SCORECARD_SEED"] ?? Date.now() % 2 ** 31);

/** `100,000` */
export function toText(count: number): string {
  return Math.round(count).toLocaleString("en-US");
}

/** `12.3 MB` */
export function toMegabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MB`;
}

/** Makes one line; what it throws becomes its figure, and the other lines of the row are still made. */
export async function attempt(
  { what, count, bound }: Pick<Line, "what" | "count" | "bound">,
  act: () => Promise<Partial<Line> & Pick<Line, "figure" | "isMet">>,
): Promise<Line> {
  try {
    return { what, count, bound, ...(await act()) };
  } catch (error) {
    const figure = (error as Error).message.replaceAll(/\/\S*\//g, "").slice(0, 300);
    return { what, count, bound, figure, isMet: false };
  }
}
