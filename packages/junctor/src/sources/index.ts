import { createGuardian, type Guardian } from "@junctor/client";
import { type Clock, systemClock } from "@junctor/core/async";
import { ConnectError } from "@junctor/core/errors";
import { packageVersion } from "@junctor/core/options";
import { createServer, type Provider, type Registry, type Server } from "@junctor/server";
import type { ServerConfig, SourceLaunch } from "../config/index.ts";
import type { OpenApiOptions } from "./openapi/openapi.ts";

export type { OpenApiOptions } from "./openapi/openapi.ts";

/**
 * Makes a tool of each operation of an API that OpenAPI 3 or Swagger 2 describes: in a file, at a URL, or as an object. Rejects when the
 * specification cannot be used at all; an operation that is described wrongly is left out, and reported to `onWarning`.
 *
 * @example
 * const registry = await fromOpenApi("./petstore.json", { server: "https://api.example.com" });
 */
export async function fromOpenApi(
  spec: string | URL | object,
  options: OpenApiOptions = {},
): Promise<Registry> {
  const openapi = await import("./openapi/openapi.ts");
  return openapi.fromOpenApi(spec, options);
}

interface OpenSourceOptions {
  readonly guardian?: Guardian | undefined;
  readonly clock?: Clock;
  /** Called for each part of a description that is wrong, and left out. */
  readonly onWarning: (text: string) => void;
  /** Called for errors of a tool that its caller does not see. */
  readonly onError: (error: unknown, tool: string) => void;
}

/**
 * Makes the server that an entry without a server of its own describes: commands or an API as tools. Rejects with a `ConnectError` that says
 * what is wrong in it.
 */
export async function openSource(
  { name, launch, sandbox }: Pick<ServerConfig, "name" | "sandbox"> & { readonly launch: SourceLaunch },
  { guardian = createGuardian(), clock = systemClock, onWarning, onError }: OpenSourceOptions,
): Promise<Server> {
  try {
    const provider = await load();
    return createServer(provider, { name, version: packageVersion });
  } catch (error) {
    if (error instanceof ConnectError) throw error;
    // Without the cause: a file that is missing is not a server that cannot be reached.
    throw new ConnectError(name, error instanceof Error ? error.message : String(error));
  }

  async function load(): Promise<Provider> {
    if (launch.kind === "graphql") {
      const { fromGraphQl } = await loadGraphQl();
      return fromGraphQl({ ...launch.api, headers: launch.headers, clock, onWarning, onError });
    }
    if (launch.kind === "openapi") {
      const { spec, ...options } = launch.api;
      return fromOpenApi(spec, { ...options, headers: launch.headers, clock, onWarning, onError });
    }
    const { fromCommands } = await import("./commands/commands.ts");
    return fromCommands({ launch, sandbox }, { guardian, clock, onError });
  }
}

/** The package `graphql` is installed only where it is wanted. */
async function loadGraphQl() {
  try {
    return await import("./graphql/graphql.ts");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new Error('it needs the package "graphql": run npm install graphql@16 where junctor is installed', {
      cause: error,
    });
  }
}
