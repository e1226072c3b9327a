import type { Server } from "@junctor/core/mcp";
import type { Endpoint } from "./endpoint.ts";
import type { Admission } from "./guard.ts";
import { refuse } from "./reply.ts";

/** Further servers of one HTTP endpoint, each at a path of its own: `/mcp/NAME` beside `/mcp`. */
export interface Mounts {
  /** The server at a name. Undefined, which answers 404, where there is none or the caller must not know of it. */
  at(name: string, caller: string | undefined): Server | undefined;
  /** The names a caller is bound to: it is refused at the path of the endpoint itself. Undefined for callers that are not bound. */
  boundTo?(caller: string): readonly string[] | undefined;
  /** Calls back, until the returned function is called, when a name is gone: its sessions end. */
  onGone?(listener: (name: string) => void): () => void;
}

/** No further servers. */
export const noMounts: Mounts = { at: () => undefined };

/** The text for a caller that is bound to mounts, at another path. */
export function boundElsewhere(names: readonly string[], path: string): string {
  const all = names.map((name) => `${path}/${encodeURIComponent(name)}`);
  return `This key is for ${all.join(" and ")} only`;
}

/** The mounts of one endpoint that were asked for so far. */
export class MountedEndpoints {
  readonly #endpoint: Endpoint;
  readonly #mounts: Mounts;
  readonly #byName = new Map<string, Endpoint>();

  readonly #stopHearing: (() => void) | undefined;

  /** `endpoint` is the one whose limits and settings all mounts share. `onGone` is told of a server whose name is gone. */
  constructor(endpoint: Endpoint, mounts: Mounts, onGone: (server: Server) => void) {
    this.#endpoint = endpoint;
    this.#mounts = mounts;
    this.#stopHearing = mounts.onGone?.((name) => {
      endpoint.sessions.endWhere(({ mount: at }) => at === name);
      const server = this.#byName.get(name)?.server;
      if (server !== undefined) onGone(server);
      this.#byName.delete(name);
    });
  }

  /** The endpoint whose name follows `base` in the path of a request. Answers 404 where there is none. */
  find({ http, reply, caller }: Admission, base: string): Endpoint | undefined {
    const name = nameIn(http.path, base);
    const server = this.#mounts.at(name, caller);
    if (server === undefined) {
      refuse(reply, 404, `Nothing is at ${http.path}`);
      return undefined;
    }
    let mounted = this.#byName.get(name);
    if (mounted?.server !== server) this.#byName.set(name, (mounted = mount(this.#endpoint, server, name)));
    return mounted;
  }

  /** The server at a name that was asked for before, or that of the endpoint itself. */
  serverAt(name: string | undefined): Server {
    return (name === undefined ? undefined : this.#byName.get(name)?.server) ?? this.#endpoint.server;
  }

  /** Ends what would never end by itself, at every mount. */
  drain(): void {
    for (const { server } of this.#byName.values()) server.drain();
  }

  close(): void {
    this.#stopHearing?.();
  }
}

/** An endpoint for another server: its calls, streams and sessions count together with those of the first. */
function mount(endpoint: Endpoint, server: Server, name: string): Endpoint {
  return {
    ...endpoint,
    server,
    mount: name,
    get isDraining() {
      return endpoint.isDraining;
    },
    get shortage() {
      return endpoint.shortage;
    },
  };
}

/** The name in the path of a mount, as it is where it has a `%` that begins no character. */
export function nameIn(path: string, base: string): string {
  const name = path.slice(base.length);
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
