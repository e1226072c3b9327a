import { BrandedError } from "@junctor/core/errors";
import { junctor } from "../../invocation/index.ts";
/** Where something listens, and what to write to have it listen elsewhere. */
interface Place {
  readonly host: string;
  readonly port: number;
  readonly portSetting: string;
  readonly hostSetting: string;
}

/** Waits for a listener. When it cannot have its port or address, the error says how to choose another. */
export async function withAdvice<T>(place: Place, listening: Promise<T>): Promise<T> {
  try {
    return await listening;
  } catch (error) {
    const describe = troubles[(error as NodeJS.ErrnoException).code ?? ""];
    if (describe === undefined) throw error;
    throw new PortError(describe(place), error);
  }
}

const noAddress = ({ host, hostSetting }: Place): string =>
  `cannot listen on ${host}: it is not an address of this machine; ${hostSetting} serves this machine alone`;

const troubles: { readonly [code: string]: (place: Place) => string } = {
  EADDRINUSE: ({ host, port, portSetting }) =>
    `port ${port} of ${host} is taken (EADDRINUSE), and ${junctor("status")} shows whether by a gateway of yours; choose another port with ${portSetting}`,
  EACCES: ({ port, portSetting }) =>
    `this user may not listen on port ${port} (EACCES), as ports below 1024 need more rights; choose another port with ${portSetting}`,
  EADDRNOTAVAIL: noAddress,
  ENOTFOUND: noAddress,
};

/** A port or address cannot be listened on. */
class PortError extends BrandedError {
  protected static override readonly brand = "PortError";

  override readonly name = "PortError";
  readonly code = "cli.port";

  constructor(message: string, cause: unknown) {
    super(message, { cause });
  }
}
