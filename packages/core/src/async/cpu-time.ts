/** The CPU time of this process so far. */
export function cpuTime(): NodeJS.CpuUsage {
  return process.cpuUsage();
}

/**
 * Milliseconds of CPU time since an earlier reading. Where others have the processor none passes, unlike on a clock. That of all threads of
 * the process counts, so it is never less than what this one took.
 */
export function cpuMsSince(earlier: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(earlier);
  return (user + system) / 1000;
}
