/** Where the gateway says what happens: the part of pino it uses. */
export interface GatewayLog {
  debug(facts: object, text: string): void;
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
  error(facts: object, text: string): void;
  /** Whether lines of a level are written at all. Where it is missing, all are; else nothing is made ready in vain. */
  isLevelEnabled?(level: GatewayLogLevel): boolean;
}

export type GatewayLogLevel = "debug" | "info" | "warn" | "error";

/** Says nothing. */
export const silentLog: GatewayLog = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  isLevelEnabled: () => false,
};
