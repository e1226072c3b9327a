import { createGuardian, type Guardian } from "@junctor/client";
import { type Clock, systemClock } from "@junctor/core/async";
import { ConnectError } from "@junctor/core/errors";
import { packageVersion } from "@junctor/core/options";
import { createServer, type Provider, type Server } from "@junctor/server";
import type { ServerConfig, SourceLaunch } from "../config/index.ts";

interface OpenSourceOptions {
  readonly guardian?: Guardian | undefined;
  readonly clock?: Clock;
  /** Called for what a tool threw that its caller is not told of. */
  readonly onError: (error: unknown, tool: string) => void;
}

/**
 * Makes the server that an entry without a server of its own describes: commands as tools. Rejects with a `ConnectError` that says
 * what is wrong in it.
 */
export async function openSource(
  { name, launch, sandbox }: Pick<ServerConfig, "name" | "sandbox"> & { readonly launch: SourceLaunch },
  { guardian = createGuardian(), clock = systemClock, onError }: OpenSourceOptions,
): Promise<Server> {
  try {
    const provider = await load();
    return createServer(provider, { name, version: packageVersion });
  } catch (error) {
    if (error instanceof ConnectError) throw error;
    throw new ConnectError(name, error instanceof Error ? error.message : String(error), { cause: error });
  }

  async function load(): Promise<Provider> {
    const { fromCommands } = await import("./commands/commands.ts");
    return fromCommands({ launch, sandbox }, { guardian, clock, onError });
  }
}
