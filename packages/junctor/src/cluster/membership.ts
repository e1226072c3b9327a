/** Where the trunk of a replica listens: a Unix socket or named pipe on one machine, TLS with a shared key between machines. */
export type TrunkAddress =
  | { readonly kind: "socket"; readonly path: string }
  | { readonly kind: "tls"; readonly host: string; readonly port: number };

/** A replica that is alive, as far as is known. */
export interface Replica {
  /** 12 hexadecimal digits, random, made at its start and never used again. */
  readonly id: string;
  readonly address: TrunkAddress;
  readonly version: string;
  /** It takes no new calls, and stays for those that belong to it. */
  readonly isDraining: boolean;
}

/** A lease that this replica holds. It is renewed until it is given back. */
export interface HeldLease {
  /** Whether this replica still has it, by the clock. Read it before each thing that is done because of the lease. */
  readonly isHeld: boolean;
  /** Gives it back. When the store cannot be reached, the lease ends by itself within 10 s. */
  release(): Promise<void>;
}

/**
 * One process as a member of a gateway that runs in several. It is registered for 10 s at a time and renews that, and all its
 * leases, every 3 s. After 7 s without a renewal, by its own monotonic clock, it counts itself out: it owns nothing any more.
 *
 * A process may be stopped at any point and go on much later. So read `isIn`, or `isHeld` of a lease, before each thing that is
 * done because of a lease: it compares the clock, and if the time is over, every `onLost` has run when it is false.
 */
export interface Membership extends AsyncDisposable {
  readonly id: string;
  /** Whether this replica counts itself in. */
  readonly isIn: boolean;
  /** The other replicas, as they were at the last renewal. */
  readonly others: readonly Replica[];
  /** A replica by id. Asks the store when it is not known here. Undefined when it is not alive. Rejects when the store cannot be asked. */
  find(id: string): Promise<Replica | undefined>;
  /** The same, as the store has it at this moment: for a replica that could not be reached. */
  findAnew(id: string): Promise<Replica | undefined>;
  /**
   * Takes a lease, or says who has it. `onLost` is called once if it is lost before it is given back: another replica has it, or
   * may have it soon because this one is out. A lease that this process holds already has this replica as its holder.
   *
   * @throws StoreError when the store cannot be reached, when this replica is out, or when the engine has just started
   */
  hold(key: string, onLost: () => void): Promise<HeldLease | { readonly holder: string }>;
  /** Calls back when this replica is out (false) and when it is in again (true). */
  onIn(listener: (isIn: boolean) => void): () => void;
  /** Tells the others, at the next renewal which is made at once, that this replica takes no new calls. */
  drain(): Promise<void>;
}
