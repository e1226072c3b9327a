/** Writes to the standard output and waits until it is out: `process.exit` would cut off what a pipe has not taken. */
export function print(text: string): Promise<void> {
  return writeAll(process.stdout, text);
}

/** The same for bytes that are no text. */
export function printBytes(bytes: Uint8Array): Promise<void> {
  return writeAll(process.stdout, bytes);
}

/** The same for people: notes, progress and complaints, which are no part of what a command gives. */
export function note(text: string): Promise<void> {
  return writeAll(process.stderr, text);
}

const watched = new WeakSet<NodeJS.WriteStream>();

function writeAll(stream: NodeJS.WriteStream, text: string | Uint8Array): Promise<void> {
  if (!watched.has(stream)) {
    watched.add(stream);
    // A reader that stopped reading (`| head`) is no failure of ours.
    stream.on("error", () => {});
  }
  return new Promise((resolve) => {
    stream.write(text, () => resolve());
  });
}

/** What a log says of anything that was thrown. */
export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : JSON.stringify(error);
}
