import { totalmem } from "node:os";
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";

/** 0: there is enough memory. 1: greedy callers are refused. 2: every new call is refused. */
export type Shortage = 0 | 1 | 2;

interface MemoryWatchOptions {
  /** How many bytes this process may use; by default the limit of its container. */
  readonly maxBytes: number | undefined;
  /** Called at each look while memory is short, and once when it no longer is. */
  readonly onLook: (shortage: Shortage) => void;
}

/** Watches the memory of this process, so that it sheds work before the system ends it. */
interface MemoryWatch {
  /** Checks the heap now. All memory is checked five times a second anyway. */
  look(): void;
  stop(): void;
}

const lookEveryMs = 200;
/** The parts of the limit from which on memory is short. Garbage counts until it is collected. */
const shortPart = 0.8;
const criticalPart = 0.9;

/** Memory is short if the old generation of the heap nears its limit, at which V8 ends the process, or if all memory nears its limit. */
export function watchMemory({ maxBytes, onLook }: MemoryWatchOptions): MemoryWatch {
  const heapLimit = oldGenerationLimit(getHeapStatistics().heap_size_limit, process);
  const limit = maxBytes ?? constrainedBytes();
  let last: Shortage = 0;
  const report = (part: number): void => {
    const shortage = part < shortPart ? 0 : part < criticalPart ? 1 : 2;
    if (shortage !== 0 || last !== 0) onLook(shortage);
    last = shortage;
  };
  const heapPart = (): number => oldGenerationBytes() / heapLimit;
  const timer = setInterval(() => {
    report(Math.max(heapPart(), limit === undefined ? 0 : process.memoryUsage.rss() / limit));
  }, lookEveryMs);
  timer.unref();
  return {
    // Reports shortage only: the timer reports its end.
    look: () => {
      const part = heapPart();
      if (part >= shortPart) report(part);
    },
    stop: () => clearInterval(timer),
  };
}

/** V8's largest young generation: three times the largest semi-space, which is 16 MiB in Node 20 and 64 MiB in Node 24. */
const youngBytes = 3 * 64 * 2 ** 20;

/**
 * How large the old generation may become. V8 reports only one limit for both generations. So use the flag that sets the limit, or
 * else subtract the largest young generation.
 */
export function oldGenerationLimit(
  heapLimit: number,
  { execArgv, env }: Pick<NodeJS.Process, "execArgv" | "env">,
): number {
  const flags = `${env["NODE_OPTIONS"] ?? ""} ${execArgv.join(" ")}`;
  const set = flags.match(/--max[-_]old[-_]space[-_]size[= ]\d+/g)?.at(-1);
  if (set !== undefined) return Number(/\d+$/.exec(set)?.[0]) * 2 ** 20;
  return Math.max(heapLimit - youngBytes, heapLimit / 2);
}

/** Counts young large objects too, because they are moved to the old generation. Other young objects are mostly garbage. */
function oldGenerationBytes(): number {
  let bytes = 0;
  for (const { space_name: name, space_used_size: used } of getHeapSpaceStatistics())
    if (name !== "new_space") bytes += used;
  return bytes;
}

/** The limit of the container this process runs in, if there is one. */
export function constrainedBytes(): number | undefined {
  const bytes = process.constrainedMemory?.() ?? 0;
  return bytes > 0 && bytes < totalmem() ? bytes : undefined;
}
