import type { LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import type ipaddr from "ipaddr.js";

/** Which hosts beside those of the public Internet may be asked. */
export interface ReachableHosts {
  /** The server is on this machine, so its authorization server may be too. */
  readonly isLoopbackAllowed: boolean;
  /** Names and addresses that the user wrote: they may be private. In lower case, as in `URL.hostname`. */
  readonly named: ReadonlySet<string>;
}

type Addresses = typeof ipaddr;

/** Whether a host of a URL is this machine. */
export function isLoopbackHost(hostname: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/** Why an address must not be asked; undefined when it may. Addresses that stand for others count as those. */
export function findAddressProblem(
  addresses: Addresses,
  address: string,
  hosts: ReachableHosts,
): string | undefined {
  if (!addresses.isValid(address)) return `${address} is not an address`;
  const range = addresses.process(address).range();
  if (range === "unicast") return undefined;
  if (range === "loopback" && hosts.isLoopbackAllowed) return undefined;
  return `${address} is not an address of the public Internet (${range})`;
}

/**
 * Finds the addresses of a host and gives only those that may be asked. The socket is opened to what this function gives, so a
 * name that resolves to another address later changes nothing.
 */
export function createGuardedLookup(
  addresses: Addresses,
  resolve: (hostname: string) => Promise<readonly LookupAddress[]>,
  hosts: ReachableHosts,
): LookupFunction {
  return (hostname, options, callback) => {
    const give = (found: readonly LookupAddress[]): void => {
      const problem = hosts.named.has(hostname.toLowerCase())
        ? undefined
        : found.map(({ address }) => findAddressProblem(addresses, address, hosts)).find(Boolean);
      const [first] = found;
      if (problem !== undefined || first === undefined)
        return callback(new ForbiddenAddress(hostname, problem ?? "it has no address"), "");
      if (options.all === true) callback(null, [...found]);
      else callback(null, first.address, first.family);
    };
    resolve(hostname)
      .then(give)
      .catch((error: unknown) => callback(error as NodeJS.ErrnoException, ""));
  };
}

/** A host that must not be asked. */
export class ForbiddenAddress extends Error {
  override readonly name = "ForbiddenAddress";

  constructor(host: string, problem: string) {
    super(`${host} must not be asked: ${problem}`);
  }
}
