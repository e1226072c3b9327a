import { totalmem } from "node:os";
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";

/** 0: there is enough memory. 1: greedy callers are refused. 2: every new call is refused. */
export type Shortage = 0 | 1 | 2;

interface MemoryWatchOptions {
  /** How many bytes this process may have; without a number, as much as the system gives it. */
  readonly maxBytes: number | undefined;
  /** Called at each look while memory is short, and once when it no longer is. */
  readonly onLook: (shortage: Shortage) => void;
}

/** Looks at the memory of this process, so that it sheds work before the system ends it. */
interface MemoryWatch {
  /** Looks now, as it does five times a second. */
  look(): void;
  stop(): void;
}

const lookEveryMs = 200;
/** The parts of what there is from which on memory is short. Garbage counts until it is collected. */
const shortPart = 0.8;
const criticalPart = 0.9;

/** Memory is short by the old generation of the heap, which V8 ends the process for, or by all of it, where there is a limit. */
export function watchMemory({ maxBytes, onLook }: MemoryWatchOptions): MemoryWatch {
  const heapLimit = oldGenerationLimit(getHeapStatistics().heap_size_limit, process);
  const limit = maxBytes ?? constrainedBytes();
  let last: Shortage = 0;
  const tell = (part: number): void => {
    const shortage = part < shortPart ? 0 : part < criticalPart ? 1 : 2;
    if (shortage !== 0 || last !== 0) onLook(shortage);
    last = shortage;
  };
  const heapPart = (): number => oldGenerationBytes() / heapLimit;
  const timer = setInterval(() => {
    tell(Math.max(heapPart(), limit === undefined ? 0 : process.memoryUsage.rss() / limit));
  }, lookEveryMs);
  timer.unref();
  return {
    // Between two looks at everything, only a heap that is fuller than it was says something new.
    look: () => {
      const part = heapPart();
      if (part >= shortPart) tell(part);
    },
    stop: () => clearInterval(timer),
  };
}

/** V8's largest young generation: three times the largest semi-space, which is 16 MiB in Node 20 and 64 MiB in Node 24. */
const youngBytes = 3 * 64 * 2 ** 20;

/**
 * How large the old generation may become. V8 tells its limit together with that of the young generation only, so the flag
 * that sets it counts, and without that the largest young generation is taken off.
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

/** Young large objects count: they are moved to the old generation as they are. Other young ones are mostly garbage. */
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
