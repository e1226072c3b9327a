/** Where the gateway says what happens: the part of pino it uses. */
export interface GatewayLog {
  debug(facts: object, text: string): void;
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
  error(facts: object, text: string): void;
}

/** Says nothing. */
export const silentLog: GatewayLog = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
};
