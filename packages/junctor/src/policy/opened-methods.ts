import type { View } from "@junctor/core/compose";
import { RpcError } from "@junctor/core/errors";
import type { CallContext, CallerInfo, MethodProvider } from "@junctor/core/provider";
import { createGlob } from "@junctor/server/internal";
import type { ServerConfig } from "../config/index.ts";
import type { GatewayServer } from "../servers/index.ts";

interface OpenedMethodsOptions {
  readonly servers: () => readonly GatewayServer[];
  readonly viewFor: (caller: CallerInfo) => View;
}

/** Whether the config opened a method for a server. */
export function opensMethod({ extensions }: Pick<ServerConfig, "extensions">, method: string): boolean {
  return Object.values(extensions).some(({ methods }) => methods.some((glob) => createGlob(glob)(method)));
}

/** Methods that the protocol does not have, of servers for which the config opened them. A method must lead to one server. */
export function createOpenedMethods({ servers, viewFor }: OpenedMethodsOptions): MethodProvider {
  const ownersOf = (method: string, context: CallContext): readonly GatewayServer[] => {
    const opened = servers().filter(({ config }) => opensMethod(config, method));
    if (opened.length === 0) return opened;
    const view = viewFor(context);
    return opened.filter(({ config }) => view.uses(config.name));
  };
  return {
    has: (method, context) => ownersOf(method, context).length > 0,
    serve: (method, params, context) => {
      const [owner, ...others] = ownersOf(method, context);
      const serve = owner?.provider.methods?.serve;
      if (owner === undefined || serve === undefined)
        throw new RpcError("rpc.method_not_found", `Method not found: ${method}`);
      if (others.length === 0) return serve(method, params, context);
      const names = [owner, ...others].map(({ config }) => config.name).join(", ");
      throw new RpcError(
        "rpc.invalid_params",
        `${method} is opened for several servers (${names}), so it leads to none`,
      );
    },
  };
}
