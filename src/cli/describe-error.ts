/** What a log says of anything that was thrown. */
export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : JSON.stringify(error);
}
