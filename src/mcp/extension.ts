import { RpcError } from "../errors/rpc-error.ts";
import type { ClientCapabilities } from "./types.ts";

/** The extensions that Junctor implements, by their ids on the wire. */
export const extensionIds = {
  tasks: "io.modelcontextprotocol/tasks",
} as const;

/** The settings of extensions by id; `{}` says that there are no settings. */
export type Extensions = { readonly [id: string]: object };

/**
 * The settings that a caller declared for an extension; undefined when it did not declare it. A caller declares by an object
 * alone, and a modern one in each request anew. Ids that are not known here are ignored.
 */
export function declaredExtension(
  { extensions }: Pick<ClientCapabilities, "extensions">,
  id: string,
): object | undefined {
  if (extensions === undefined || extensions === null || !Object.hasOwn(extensions, id)) return undefined;
  const settings: unknown = extensions[id];
  return typeof settings === "object" && settings !== null ? settings : undefined;
}

/** The error for a request that cannot be served unless its sender declares an extension. */
export function missingExtension(id: string): RpcError {
  return new RpcError("rpc.missing_capability", `This request needs the client extension ${id}`, {
    data: { requiredCapabilities: { extensions: { [id]: {} } } },
  });
}

const withoutTasksOf = new WeakMap<ClientCapabilities, ClientCapabilities>();

/** Capabilities without tasks, for a provider that has none: it must not start a task that its caller cannot reach. */
export function withoutTasks(capabilities: ClientCapabilities): ClientCapabilities {
  if (declaredExtension(capabilities, extensionIds.tasks) === undefined) return capabilities;
  let rest = withoutTasksOf.get(capabilities);
  if (rest === undefined) {
    const { [extensionIds.tasks]: _, ...extensions } = capabilities.extensions ?? {};
    withoutTasksOf.set(capabilities, (rest = { ...capabilities, extensions }));
  }
  return rest;
}
