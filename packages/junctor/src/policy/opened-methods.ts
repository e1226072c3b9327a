import type { View } from "@junctor/core/compose";
import { RpcError } from "@junctor/core/errors";
import type { CallerInfo, Provider } from "@junctor/core/provider";
import { createGlob } from "@junctor/server/internal";
import type { ServerConfig } from "../config/index.ts";
import type { GatewayServer } from "../servers/index.ts";

/** Whether the config opened a method for a server. */
export function opensMethod({ extensions }: Pick<ServerConfig, "extensions">, method: string): boolean {
  return Object.values(extensions).some(({ methods }) => methods.some((glob) => createGlob(glob)(method)));
}

/** Serves methods that the protocol does not have, of servers for which the config opened them. A method must lead to one server. */
export function withOpenedMethods(
  inner: Provider,
  servers: () => readonly GatewayServer[],
  viewFor: (caller: CallerInfo) => View,
): Provider {
  const ownersOf = (method: string, caller: CallerInfo): readonly GatewayServer[] => {
    const opened = servers().filter(({ config }) => opensMethod(config, method));
    if (opened.length === 0) return opened;
    const view = viewFor(caller);
    return opened.filter(({ config }) => view.uses(config.name));
  };
  const callOpened: Provider["call"] = (operation, context) => {
    const { method } = operation;
    const [owner, ...others] = ownersOf(method, context);
    if (owner === undefined) throw new RpcError("rpc.method_not_found", `Method not found: ${method}`);
    if (others.length === 0) return owner.provider.call(operation, context);
    const names = [owner, ...others].map(({ config }) => config.name).join(", ");
    throw new RpcError(
      "rpc.invalid_params",
      `${method} is opened for several servers (${names}), so it leads to none`,
    );
  };
  return {
    ...inner,
    call: (operation, context) =>
      operation.part === undefined ? callOpened(operation, context) : inner.call(operation, context),
    offers: (caller) => {
      const own = inner.offers(caller);
      return { ...own, serves: (method) => own.serves(method) || ownersOf(method, caller).length > 0 };
    },
  };
}
