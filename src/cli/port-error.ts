/** Waits for a listener. When its port cannot be had, the error says which flag chooses another. */
export async function withAdvice<T>(flag: "tcp" | "port", listening: Promise<T>): Promise<T> {
  try {
    return await listening;
  } catch (error) {
    if (isPortTrouble(error)) throw new PortError(flag, error);
    throw error;
  }
}

function isPortTrouble(error: unknown): error is Error {
  return (
    error instanceof Error && "code" in error && (error.code === "EADDRINUSE" || error.code === "EACCES")
  );
}

/** A port is taken, or only for those with more rights. */
class PortError extends Error {
  override readonly name = "PortError";
  readonly code = "cli.port";

  /** `flag` is the one that chooses another. */
  constructor(flag: string, cause: Error) {
    super(`${cause.message}; choose another port with --${flag} PORT`, { cause });
  }
}
