import type { GatewayLog } from "./log.ts";

/** A log that never says a secret, wherever in what is logged it turns up. */
export function createSafeLog(log: GatewayLog, hide: (text: string) => string): GatewayLog {
  const safely =
    (level: keyof GatewayLog) =>
    (facts: object, text: string): void => {
      log[level](JSON.parse(hide(JSON.stringify(facts))) as object, hide(text));
    };
  return { debug: safely("debug"), info: safely("info"), warn: safely("warn"), error: safely("error") };
}

/** Takes secrets out of JSON text. */
export function createHide(secrets: () => readonly string[]): (text: string) => string {
  return (text) =>
    secrets().reduce((shown, secret) => shown.replaceAll(toJsonText(secret), "[secret]"), text);
}

/** A secret as it stands inside a JSON string. */
function toJsonText(secret: string): string {
  return JSON.stringify(secret).slice(1, -1);
}
