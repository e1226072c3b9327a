import { anyone, type UriNames } from "@junctor/core/compose";
import type { Server } from "@junctor/core/mcp";
import type { Middleware, Provider } from "@junctor/core/provider";
import type { Mounts } from "@junctor/server/internal";
import { withOwnNames } from "../catalog/index.ts";
import type { GatewayConfig, ProfileConfig } from "../config/index.ts";
import type { Access } from "../policy/index.ts";
import { createEntrance, type Entrance, type EntranceParts } from "./entrance.ts";
import { createProfileStack, type ProfileStack } from "./profile-stack.ts";

/** The profiles and the single servers of a gateway, each an entrance of its own. A server is there under its own names. */
export class GatewayMounts implements Mounts {
  readonly #parts: EntranceParts;
  readonly #access: Access;
  readonly #entrances = new Map<string, ProfileEntrance>();
  #profiles: ReadonlyMap<string, ProfileConfig> = new Map();
  /** Servers that were asked for alone; most never are. */
  readonly #alone = new Map<string, Entrance>();
  #servers: ReadonlySet<string> = new Set();
  readonly #onGone = new Set<(name: string) => void>();

  constructor(parts: EntranceParts, access: Access) {
    this.#parts = parts;
    this.#access = access;
    this.update(parts.config());
  }

  /** Has the mounts of this config from now on. Those that stay keep their sessions; those that are gone end them. */
  update({ profiles, servers }: GatewayConfig): void {
    const before = [...this.#profiles.keys(), ...this.#alone.keys()];
    this.#profiles = new Map(profiles.map((profile) => [profile.name, profile]));
    this.#servers = new Set(servers.map(({ name }) => name));
    for (const name of before) {
      if (this.#profiles.has(name) || this.#servers.has(name)) continue;
      (this.#entrances.get(name) ?? this.#alone.get(name))?.server.drain();
      this.#entrances.delete(name);
      this.#alone.delete(name);
      for (const tell of this.#onGone) tell(name);
    }
    const profileNamed = (name: string): ProfileConfig | undefined => this.#profiles.get(name);
    for (const profile of profiles) {
      const entrance = this.#entrances.get(profile.name);
      if (entrance === undefined)
        this.#entrances.set(
          profile.name,
          createProfileEntrance(this.#parts, this.#access, profileNamed, profile),
        );
      else entrance.stack.use(profile);
    }
  }

  at(name: string, caller: string | undefined): Server | undefined {
    return this.#access.mayUse(name, caller) ? this.serverAt(name) : undefined;
  }

  /** The server of a mount, for callers that may use it and for those that may not. */
  serverAt(name: string): Server | undefined {
    const profile = this.#entrances.get(name);
    if (profile !== undefined || !this.#servers.has(name)) return profile?.server;
    let alone = this.#alone.get(name);
    if (alone === undefined)
      this.#alone.set(name, (alone = createServerEntrance(this.#parts, this.#access, name)));
    return alone.server;
  }

  boundTo(caller: string): readonly string[] | undefined {
    return this.#access.boundTo(caller);
  }

  onGone(listener: (name: string) => void): () => void {
    const heard: typeof listener = (name) => listener(name);
    this.#onGone.add(heard);
    return () => void this.#onGone.delete(heard);
  }

  /** Replaces the middleware of every mount. */
  replace(middlewares: readonly Middleware[]): void {
    for (const entrance of [...this.#entrances.values(), ...this.#alone.values()])
      entrance.replace(middlewares);
  }

  /** Ends what would never end by itself, at every mount. */
  drain(): void {
    for (const { server } of [...this.#entrances.values(), ...this.#alone.values()]) server.drain();
  }
}

function createServerEntrance(parts: EntranceParts, access: Access, name: string): Entrance {
  const viewFor = access.viewAt(name);
  const uris = (): UriNames | undefined => parts.catalog.snapshotFor(anyone).uris.get(name);
  const wrap = (provider: Provider): Provider => withOwnNames(provider, { viewFor, uris });
  return createEntrance(parts, { viewFor, mount: name, wrap });
}

/** A profile's entrance, with the part that follows the config. */
interface ProfileEntrance extends Entrance {
  readonly stack: ProfileStack;
}

function createProfileEntrance(
  parts: EntranceParts,
  access: Access,
  profileNamed: (name: string) => ProfileConfig | undefined,
  profile: ProfileConfig,
): ProfileEntrance {
  const { name } = profile;
  const viewFor = access.viewAt(name);
  let stack: ProfileStack | undefined;
  const entrance = createEntrance(parts, {
    viewFor,
    mount: name,
    instructions: () => profileNamed(name)?.instructions,
    // The profile's own caps count before those of servers.
    around: (provider) => provider,
    wrap: (provider) => {
      stack = createProfileStack(provider, profile, { ...parts, viewFor });
      return stack.provider;
    },
  });
  return { ...entrance, stack: stack as ProfileStack };
}
