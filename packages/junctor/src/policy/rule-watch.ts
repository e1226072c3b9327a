import type { ConfigIssue } from "../config/index.ts";
import type { GatewayLog } from "../log/index.ts";

/** Most findings that are remembered; a config that is edited for ever must not fill our memory. */
const maxLogged = 1000;

/** Tells the log, once each, which rules of the config match nothing. */
export class RuleWatch {
  readonly #find: () => readonly ConfigIssue[];
  readonly #log: GatewayLog;
  readonly #logged = new Set<string>();
  #isDue = false;

  constructor(find: () => readonly ConfigIssue[], log: GatewayLog) {
    this.#find = find;
    this.#log = log;
  }

  /** Something was listed, or the config changed. Looks once for all that comes in the same turn. */
  look(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      for (const { path, message } of this.#find()) this.#tell(path, message);
    });
  }

  #tell(path: string, message: string): void {
    const text = `${path}: ${message}`;
    if (this.#logged.has(text)) return;
    if (this.#logged.size >= maxLogged) this.#logged.clear();
    this.#logged.add(text);
    this.#log.warn({ path }, text);
  }
}
