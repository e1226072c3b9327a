/** The limits of a server's process. */
export interface SandboxConfig {
  readonly network: boolean;
  /** Absolute paths it may read, beside the folders of the system. */
  readonly read: readonly string[];
  /** Absolute paths it may also write. */
  readonly write: readonly string[];
  /** For each of its processes. */
  readonly memoryMb?: number;
  /** How many processes and threads it may have. */
  readonly processes?: number;
}
