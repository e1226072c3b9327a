import { createInterface } from "node:readline";

/** Asks for one line; undefined is the end of input. */
export type AskLine = (prompt: string) => Promise<string | undefined>;

/**
 * Prompts go to the standard error stream, so that the standard output holds the result alone. Lines that were typed, or
 * pasted, ahead of their questions wait for them.
 */
export async function withTerminal<T>(
  onInterrupt: () => void,
  signal: AbortSignal,
  work: (ask: AskLine) => Promise<T>,
): Promise<T> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr, terminal: true });
  const lines: string[] = [];
  const state = { isEnded: false, wake: (): void => {} };
  terminal.on("SIGINT", onInterrupt);
  terminal.on("line", (line) => {
    lines.push(line);
    state.wake();
  });
  terminal.on("close", () => {
    state.isEnded = true;
    state.wake();
  });
  const onAbort = (): void => terminal.close();
  signal.addEventListener("abort", onAbort, { once: true });
  const ask: AskLine = async (prompt) => {
    terminal.setPrompt(prompt);
    if (lines.length === 0 && !state.isEnded) terminal.prompt();
    while (lines.length === 0 && !state.isEnded)
      await new Promise<void>((resolve) => {
        state.wake = resolve;
      });
    signal.throwIfAborted();
    return lines.shift();
  };
  try {
    return await work(ask);
  } finally {
    signal.removeEventListener("abort", onAbort);
    terminal.close();
  }
}
