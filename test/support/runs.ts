const isAll = process.env["JUNCTOR_RUNS"] === "all";

/** How many runs a property has: a tenth of them in the quick project, all of them in the slow one, which runs its file too. */
export function runs(all: number): number {
  return isAll ? all : Math.ceil(all / 10);
}
