import type { DisabledServer } from "./config/config.ts";
import type { GatewayLog } from "./log.ts";
import type { ServerStatus } from "./status.ts";

/** How a server is that needs a variable without a value. */
export function describeDisabled({ name, reason }: DisabledServer): ServerStatus {
  return { name, status: "disabled", tools: 0, resources: 0, prompts: 0, trouble: reason };
}

/** Warns of servers that are disabled and were not before, or for another reason. */
export function logDisabled(
  log: GatewayLog,
  disabled: readonly DisabledServer[],
  before: readonly DisabledServer[],
): void {
  for (const { name, reason } of disabled) {
    if (before.some((other) => other.name === name && other.reason === reason)) continue;
    log.warn({ server: name, reason }, `${name} is disabled`);
  }
}
