import { Buffer } from "node:buffer";
import { closeSync, openSync, readFileSync, readSync, writeSync } from "node:fs";
import { toChildEnv } from "@junctor/client/internal";
import { describeError } from "./print.ts";

/**
 * Takes the variables that servers do not get out of `/proc/PID/environ`, where every program of the same user can read with
 * what environment this process was started. `process.env` keeps all of them: they are copied to other memory first. The system
 * shows the memory it laid the variables out in at the start, so this overwrites that memory by `/proc/self/mem`; no call
 * that Node offers does it, and `delete process.env.NAME` does not. Returns what went wrong; undefined where there is no `/proc`.
 */
export function hideEnvironment(): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const { start, size } = findBlock();
    const memory = openSync("/proc/self/mem", "r+");
    try {
      const block = Buffer.alloc(size);
      readSync(memory, block, 0, size, start);
      hideIn(block);
      for (let at = 0; at < size;) at += writeSync(memory, block, at, size - at, start + at);
    } finally {
      closeSync(memory);
    }
    return undefined;
  } catch (error) {
    return describeError(error);
  }
}

/** Where the variables are: fields 50 and 51 of `/proc/self/stat`, counted after the name, which may contain anything. */
function findBlock(): { readonly start: number; readonly size: number } {
  const stat = readFileSync("/proc/self/stat", "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const start = Number(fields[47]);
  const end = Number(fields[48]);
  if (!(start > 0 && end >= start)) throw new Error("/proc/self/stat does not say where the variables are");
  return { start, size: end - start };
}

/** Replaces each `NAME=VALUE` that servers do not get by zeros. */
function hideIn(block: Buffer): void {
  const shown = toChildEnv(process.env, {}, process.platform);
  for (let at = 0; at < block.length;) {
    const zero = block.indexOf(0, at);
    const end = zero === -1 ? block.length : zero;
    const [name = ""] = block.toString("utf8", at, end).split("=", 1);
    if (!Object.hasOwn(shown, name)) {
      const value = process.env[name];
      // Setting it again, to the same value, copies it.
      if (name !== "" && value !== undefined) process.env[name] = value;
      block.fill(0, at, end);
    }
    at = end + 1;
  }
}
