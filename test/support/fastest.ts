/** The shortest time of several tries, in ms: what the work itself takes, whatever else the machine is doing. */
export async function fastestOf(tries: number, work: (attempt: number) => Promise<unknown>): Promise<number> {
  let fastest = Infinity;
  for (let attempt = 0; attempt < tries; attempt++) {
    const startedAt = performance.now();
    await work(attempt);
    fastest = Math.min(fastest, performance.now() - startedAt);
  }
  return fastest;
}
