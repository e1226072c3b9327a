import { StoreError } from "@junctor/core/errors";
import { parseStoreUrl, type TrunkConfig } from "../../cluster/index.ts";
import { isAnyAddress, type GatewayConfig } from "../../config/index.ts";
import { givenSecrets } from "../login/index.ts";
import { UsageError } from "../terminal/index.ts";

/** How this process joins others, by the config and the environment. */
interface ReplicaSettings {
  /** The URL of the engine that replicas share. It may have a password in it. */
  readonly store: string | undefined;
  /** Undefined: on this machine only. */
  readonly trunk: TrunkConfig | undefined;
}

/**
 * Reads `JUNCTOR_STORE` and `JUNCTOR_TRUNK`, which win over the config.
 *
 * @throws UsageError for one that is wrong
 */
export function readReplicaSettings(
  { store, trunk }: Pick<GatewayConfig, "store" | "trunk">,
  env: NodeJS.ProcessEnv,
): ReplicaSettings {
  const [url = "", place = ""] = [env["JUNCTOR_STORE"]?.trim(), env["JUNCTOR_TRUNK"]?.trim()];
  try {
    if (url !== "") parseStoreUrl(url);
  } catch (error) {
    if (error instanceof StoreError) throw new UsageError(`JUNCTOR_STORE: ${error.message}`);
    throw error;
  }
  return {
    store: url === "" ? store : url,
    trunk: place === "" ? trunk : parseTrunk(place, trunk?.advertise),
  };
}

/**
 * Replicas read each other's tokens, and prove to each other who they are, by one secret. A secret of this machine alone would refuse
 * the callers of every other replica.
 *
 * @throws UsageError when a store is named and `JUNCTOR_SECRET` is not set
 */
export function assertClusterSecret({ store }: ReplicaSettings, env: NodeJS.ProcessEnv): void {
  if (store === undefined || givenSecrets(env).length > 0) return;
  throw new UsageError(
    "a store is named, so there are other replicas: set JUNCTOR_SECRET to the same text for all of them (openssl rand -hex 32 makes one)",
  );
}

function parseTrunk(text: string, advertise: string | undefined): TrunkConfig {
  const parts = /^(?:\[([\da-f:.]+)\]|([\w.-]+)):(\d{1,5})$/iu.exec(text);
  const [host, port] = [parts?.[1] ?? parts?.[2], Number(parts?.[3])];
  if (host === undefined || !(port <= 65_535))
    throw new UsageError(`JUNCTOR_TRUNK needs HOST:PORT, such as 10.0.0.5:7790, not ${JSON.stringify(text)}`);
  if (isAnyAddress(host) && advertise === undefined)
    throw new UsageError(
      `JUNCTOR_TRUNK names no address that other replicas could use: write this machine's instead of ${host}, or "advertise" into junctor.trunk`,
    );
  return { host, port, ...(advertise === undefined ? {} : { advertise }) };
}
