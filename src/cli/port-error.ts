/** Waits for a listener. When it cannot have its port or address, the error says how to choose another. */
export async function withAdvice<T>(
  place: { readonly host: string; readonly port: number; readonly another: string },
  listening: Promise<T>,
): Promise<T> {
  try {
    return await listening;
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    const describe = troubles[code];
    if (describe === undefined) throw error;
    throw new PortError(describe(place), error);
  }
}

type Place = Parameters<typeof withAdvice>[0];

const noAddress = ({ host }: Place): string =>
  `cannot listen on ${host}: it is not an address of this machine; --host 127.0.0.1 is this machine alone, --host 0.0.0.0 every address of it`;

const troubles: { readonly [code: string]: (place: Place) => string } = {
  EADDRINUSE: ({ host, port, another }) =>
    `port ${port} of ${host} is taken (EADDRINUSE): junctor status shows whether by a gateway of yours; ${another}`,
  EACCES: ({ port, another }) =>
    `port ${port} may not be used by this user (EACCES): ports below 1024 need more rights; ${another}`,
  EADDRNOTAVAIL: noAddress,
  ENOTFOUND: noAddress,
};

/** A port or address cannot be listened on. */
class PortError extends Error {
  override readonly name = "PortError";
  readonly code = "cli.port";

  constructor(message: string, cause: unknown) {
    super(message, { cause });
  }
}
