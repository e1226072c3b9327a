import type { Client, ConnectOptions } from "@junctor/client";
import type { Pins } from "./pins.ts";

type Open = (options: ConnectOptions) => Promise<Client>;

/** Opens clients whose lists are compared with the lock when they come, before they are known to the gateway. */
export function withPreparedLists(server: string, open: Open, pins: () => Pins | undefined): Open {
  return async (options) => {
    const client = await open(options);
    if (pins() === undefined) return client;
    const prepared: Pick<Client, "listTools" | "listPrompts" | "listResources" | "listResourceTemplates"> = {
      listTools: async (...given) => {
        const items = await client.listTools(...given);
        await pins()?.prepare(server, "tools", items);
        return items;
      },
      listPrompts: async () => {
        const items = await client.listPrompts();
        await pins()?.prepare(server, "prompts", items);
        return items;
      },
      listResources: async () => {
        const items = await client.listResources();
        await pins()?.prepare(server, "resources", items);
        return items;
      },
      listResourceTemplates: async () => {
        const items = await client.listResourceTemplates();
        await pins()?.prepare(server, "templates", items);
        return items;
      },
    };
    // Everything else is the client's own, its getters included.
    return Object.setPrototypeOf(prepared, client) as Client;
  };
}
