import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const vitest = fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url));

/** What a test printed and whether all of its cases passed. */
export interface TestRun {
  readonly isGreen: boolean;
  readonly output: string;
}

/** Runs one test file of the project with more work than `npm test` gives it. */
export function runTest(
  file: string,
  env: { readonly [name: string]: string },
  title?: string,
): Promise<TestRun> {
  const args = [vitest, "run", file, ...(title === undefined ? [] : ["-t", title])];
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...env, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  return new Promise((resolve) => {
    child.once("close", (code) => {
      if (code !== 0) process.stderr.write(output.slice(-6000));
      resolve({ isGreen: code === 0, output });
    });
  });
}

/** The first line of the output that matches, or what failed. */
export function figureOf({ output }: TestRun, pattern: RegExp): string {
  const found = pattern.exec(output)?.[0];
  const failure = /AssertionError: .*|Error: .*/.exec(output)?.[0];
  return found ?? failure?.slice(0, 200) ?? "no figure was printed";
}
