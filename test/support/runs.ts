const isAll = process.env["JUNCTOR_RUNS"] === "all";

/**
 * How many runs a property has: a tenth of them in the quick loop, all of them where `JUNCTOR_RUNS` is `all`. `npm test` sets it to `unit`,
 * which is `all` for the unit tests alone.
 */
export function runs(all: number): number {
  return isAll ? all : Math.ceil(all / 10);
}
